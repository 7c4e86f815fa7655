"""The best OOM kill is the one that never happens: memory near its limit is raised in place, up to the cap.

Where the pod's node cannot, the attempt hands off to a pod with more. Where the next pod would be refused as well, it
goes on with what it has.
"""

from datetime import datetime, timedelta

from triage_contract.database.rows import AttemptRow
from triage_contract.quantities import format_memory
from triage_contract.states import Cause
from triage_operator.actions import RaiseMemory, RequestHandoff, Wait
from triage_operator.diagnosing import PodState, diagnose
from triage_operator.memory import is_near, raised_limit
from triage_operator.phases import standing_phase
from triage_operator.reasons import Reason
from triage_operator.resizing import PodMemory, read_memory
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Resize, Snapshot


def raise_memory(
    snapshot: Snapshot, settings: DecidingSettings
) -> RaiseMemory | RequestHandoff | Wait | None:
    """Ask for more memory for the open attempt's pod, once for each step, or for a hand-off."""
    attempt, memory = snapshot.open_attempt, _memory(snapshot)
    if attempt is None or memory is None or attempt.memory_used_bytes is None:
        return None
    limit = memory.given_bytes or memory.asked_bytes
    wanted = _wanted(snapshot, memory, limit)
    if wanted is None or not is_near(attempt.memory_used_bytes, limit):
        return None
    if memory.given_bytes is None:
        return _hand_off(attempt, "Its node cannot raise that of a running pod.")
    asked = _asked(snapshot, wanted)
    if asked is None:
        return RaiseMemory(
            reason=Reason.RAISING_MEMORY,
            message=f"Attempt {attempt.epoch} uses {_mebibytes(attempt.memory_used_bytes)} MiB of memory:"
            f" its limit is to be raised from {format_memory(limit)} to {format_memory(wanted)}.",
            serial=attempt.serial,
            limit_bytes=wanted,
        )
    if asked.refusal is not None:
        if asked.binds_next:
            return Wait(
                reason=Reason.MEMORY_REFUSED,
                message=f"The memory limit of attempt {attempt.epoch} stays as it is: {asked.refusal}",
                phase=standing_phase(snapshot),
                until=None,
            )
        return _hand_off(attempt, asked.refusal)
    if memory.is_infeasible or _is_overdue(snapshot, memory, asked, settings):
        return _hand_off(attempt, memory.obstacle or "Its node does not answer.")
    return None


def raise_memory_at(snapshot: Snapshot, settings: DecidingSettings) -> datetime | None:
    """Give when a node has had its time to give more memory; None: none is asked for, or it is about to."""
    memory = _memory(snapshot)
    if memory is None or memory.is_accepted or memory.asked_bytes == memory.given_bytes:
        return None
    asked = _asked(snapshot, memory.asked_bytes)
    return None if asked is None else _due_at(asked, settings)


def _memory(snapshot: Snapshot) -> PodMemory | None:
    """Give the memory of the open attempt's pod, if there is something to do about it."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.claimed_at is None or attempt.handoff_requested_at is not None:
        return None
    pod = snapshot.pod_of(attempt)
    if pod is None or diagnose(pod).state is not PodState.RUNNING:
        return None
    return read_memory(pod)


def _wanted(snapshot: Snapshot, memory: PodMemory, limit: int) -> int | None:
    # What an operator before this one asked for, and its node has not given, goes on.
    if memory.asked_bytes > limit:
        return memory.asked_bytes
    return None if snapshot.agent is None else raised_limit(snapshot.agent, limit)


def _asked(snapshot: Snapshot, limit: int) -> Resize | None:
    resize = snapshot.resize
    return resize if resize is not None and resize.limit_bytes == limit else None


def _is_overdue(snapshot: Snapshot, memory: PodMemory, asked: Resize, settings: DecidingSettings) -> bool:
    return not memory.is_accepted and snapshot.now >= _due_at(asked, settings)


def _due_at(asked: Resize, settings: DecidingSettings) -> datetime:
    return asked.at + timedelta(seconds=settings.raise_seconds)


def _hand_off(attempt: AttemptRow, why: str) -> RequestHandoff:
    return RequestHandoff(
        reason=Reason.HANDING_OFF,
        message=f"Attempt {attempt.epoch} is near its memory limit, and is to hand off to a bigger pod. {why}",
        serial=attempt.serial,
        cause=Cause.SHORT_OF_MEMORY,
    )


def _mebibytes(size_bytes: int) -> int:
    return size_bytes // 1024**2
