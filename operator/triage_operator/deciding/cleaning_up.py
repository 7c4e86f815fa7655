"""Pods of ended attempts that still run are deleted; those that ended stay as long as the run, for their logs."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome
from triage_operator.actions import DeletePod
from triage_operator.deciding.policy import earliest
from triage_operator.diagnosing import PodState, diagnose
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Pod, Snapshot


def clean_up(snapshot: Snapshot, settings: DecidingSettings) -> DeletePod | None:
    """Delete the first pod whose time is over."""
    for pod, due in _leftovers(snapshot, settings):
        if snapshot.now >= due:
            metadata = pod["metadata"]
            return DeletePod(
                reason=Reason.CLEANING_UP,
                message=f"Pod {metadata['name']} still ran after the end of its attempt.",
                name=metadata["name"],
                uid=metadata["uid"],
            )
    return None


def clean_up_at(snapshot: Snapshot, settings: DecidingSettings) -> datetime | None:
    """Give when the next pod's time is over."""
    return earliest(due for _, due in _leftovers(snapshot, settings))


def _leftovers(snapshot: Snapshot, settings: DecidingSettings) -> Iterator[tuple[Pod, datetime]]:
    for attempt in snapshot.attempts:
        pod = snapshot.pod_of(attempt)
        if pod is not None and attempt.ended_at is not None and not _is_over(pod):
            yield pod, attempt.ended_at + _patience(attempt, pod, settings)


def _is_over(pod: Pod) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed") or pod["metadata"].get("deletionTimestamp") is not None


def _patience(attempt: AttemptRow, pod: Pod, settings: DecidingSettings) -> timedelta:
    """Give how long after the attempt's end its pod may run.

    A process that ends by itself needs a moment; one that is presumed dead leaves its pod to the kubelet, whose word on
    the cause is worth having.
    """
    running = diagnose(pod).state is PodState.RUNNING
    unwanted = attempt.outcome is Outcome.CANCELLED or attempt.cause is Cause.UNRESPONSIVE
    return timedelta(seconds=settings.leaving_seconds if running and not unwanted else 0)
