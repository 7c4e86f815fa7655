"""An attempt that released its fence has ended, whatever its pod still does: its successor need not wait."""

from typing import Final

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome
from triage_operator.actions import EndAttempt
from triage_operator.budgeting import counts
from triage_operator.deciding.ending import end
from triage_operator.diagnosing import cause_of_absence, diagnose
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

_REASONS: Final = {
    Outcome.FINISHED: Reason.COMPLETED,
    Outcome.WAITING: Reason.INPUT_REQUIRED,
    Outcome.IN_DOUBT: Reason.IN_DOUBT,
    Outcome.FAILED: Reason.FAILED,
    Outcome.MODEL_UNAVAILABLE: Reason.MODEL_UNAVAILABLE,
    Outcome.UNKNOWN_INVOCATION: Reason.UNKNOWN_INVOCATION,
    Outcome.BAD_CONFIGURATION: Reason.BAD_CONFIGURATION,
}
_CAUSES: Final = {
    Outcome.FAILED: Cause.APP_ERROR,
    Outcome.MODEL_UNAVAILABLE: Cause.MODEL_ERROR,
    Outcome.BAD_CONFIGURATION: Cause.BAD_CONFIG,
}
DISRUPTIONS: Final = frozenset(
    {
        Cause.DRAIN,
        Cause.PREEMPTED,
        Cause.DELETED,
        Cause.NODE_PRESSURE,
        Cause.NODE_SHUTDOWN,
        Cause.NODE_LOST,
        Cause.NODE_GONE,
    }
)
"""Causes that explain why a process was told to end."""


def accept_release(snapshot: Snapshot, settings: DecidingSettings) -> EndAttempt | None:
    """Record what the attempt says of its own end."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.released_at is None:
        return None
    outcome = attempt.outcome or Outcome.HANDED_OFF
    if outcome is Outcome.HANDED_OFF:
        cause = _handoff_cause(snapshot, attempt)
        message = f"Attempt {attempt.epoch} handed off: {cause}."
        return end(attempt, outcome=outcome, cause=cause, reason=Reason.HANDED_OFF, message=message)
    cause_of_end = _CAUSES.get(outcome)
    return end(
        attempt,
        outcome=outcome,
        cause=cause_of_end,
        counted=cause_of_end is not None and counts(cause_of_end, attempt, snapshot.agent),
        reason=_REASONS.get(outcome, Reason.LOST),
        message=attempt.error or f"Attempt {attempt.epoch} ended: {outcome}.",
    )


def _handoff_cause(snapshot: Snapshot, attempt: AttemptRow) -> Cause:
    """Give the reason for which the hand-off was asked for, else what the pod says, else ``sigterm``."""
    if attempt.handoff_reason in set(Cause):
        return Cause(attempt.handoff_reason)
    pod, last = snapshot.pod_of(attempt), snapshot.last_pods.get(attempt.epoch)
    cause = diagnose(pod).cause if pod is not None else None if last is None else cause_of_absence(last)
    return cause if cause in DISRUPTIONS else Cause.SIGTERM
