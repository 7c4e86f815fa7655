"""An attempt that gives no sign of life is lost, before the kubelet says so, or although it never will.

Nothing here is proof of death; the fence makes an error harmless. A healthy attempt sets no alarm: who looks
at the locks looks at the heartbeats too, and wakes the run of one that is old.
"""

from datetime import datetime, timedelta

from triage_contract.database.rows import AttemptRow
from triage_contract.names import SCARCE_MEMORY
from triage_contract.states import Cause
from triage_operator.actions import EndAttempt
from triage_operator.deciding.ending import lose
from triage_operator.deciding.policy import earliest
from triage_operator.diagnosing import diagnose
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def lose_silent(snapshot: Snapshot, settings: DecidingSettings) -> EndAttempt | None:
    """End an attempt whose lock stays free without a heartbeat since, or whose heartbeat has lapsed."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.claimed_at is None:
        return None
    pod = snapshot.pod_of(attempt)
    leaving = None if pod is None else diagnose(pod).cause
    due = _lock_due_at(snapshot, attempt, settings)
    if due is not None and snapshot.now >= due:
        return lose(
            snapshot, attempt, leaving, "The process has let go of its lock, and gave no heartbeat since."
        )
    due = _heartbeat_due_at(snapshot, attempt, settings)
    if snapshot.now >= due:
        return lose(
            snapshot,
            attempt,
            leaving or Cause.UNRESPONSIVE,
            f"No heartbeat for {settings.heartbeat_lapse_seconds:g} s.",
        )
    return None


def lose_silent_at(snapshot: Snapshot, settings: DecidingSettings) -> datetime | None:
    """Give when a suspect attempt will be taken for lost; None: it is not suspect."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.claimed_at is None:
        return None
    is_old = snapshot.now - _heartbeat_at(attempt) >= timedelta(seconds=settings.heartbeat_lapse_seconds)
    return earliest(
        (
            _lock_due_at(snapshot, attempt, settings),
            _heartbeat_due_at(snapshot, attempt, settings) if is_old else None,
        )
    )


def _lock_due_at(snapshot: Snapshot, attempt: AttemptRow, settings: DecidingSettings) -> datetime | None:
    free_since = snapshot.life.lock_free_since
    if free_since is None or _heartbeat_at(attempt) > free_since:
        return None
    near = _is_near_limit(attempt)
    return free_since + timedelta(
        seconds=settings.kubelet_word_seconds if near else settings.lock_grace_seconds
    )


def _heartbeat_due_at(snapshot: Snapshot, attempt: AttemptRow, settings: DecidingSettings) -> datetime:
    """Give when the heartbeat has lapsed. Time in which the operator could not have seen one does not count."""
    since = max(_heartbeat_at(attempt), snapshot.life.reachable_since)
    return since + timedelta(seconds=settings.heartbeat_lapse_seconds)


def _heartbeat_at(attempt: AttemptRow) -> datetime:
    # The claim is the first heartbeat.
    return attempt.heartbeat_at or attempt.created_at


def _is_near_limit(attempt: AttemptRow) -> bool:
    used, limit = attempt.memory_used_bytes, attempt.memory_limit_bytes
    return used is not None and limit is not None and used >= limit * SCARCE_MEMORY
