"""How the ends of attempts and of failed runs are stated."""

from typing import Final

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome, RunState
from triage_operator.actions import EndAttempt, EndRun
from triage_operator.budgeting import counts
from triage_operator.reasons import Reason
from triage_operator.snapshot import Snapshot

_ONCE_RUNNING: Final = {Cause.REJECTED: Cause.STATUS_UNKNOWN, Cause.DELETED_PENDING: Cause.DELETED}
"""What a pod that seems never to have run tells of an attempt that was claimed. A kubelet that restarts may
refuse, as if it were new, a pod that ran."""


def end(
    attempt: AttemptRow,
    *,
    outcome: Outcome,
    reason: Reason,
    message: str,
    cause: Cause | None = None,
    counted: bool = False,
    exit_code: int | None = None,
    confirmed: bool = False,
) -> EndAttempt:
    """End an attempt."""
    return EndAttempt(
        reason=reason,
        message=message,
        serial=attempt.serial,
        epoch=attempt.epoch,
        outcome=outcome,
        cause=cause,
        counted=counted,
        exit_code=exit_code,
        confirmed=confirmed,
    )


def lose(snapshot: Snapshot, attempt: AttemptRow, cause: Cause | None, message: str) -> EndAttempt:
    """End an attempt that was lost. Cause None: not known yet."""
    cause = fitting_cause(attempt, cause)
    return end(
        attempt,
        outcome=Outcome.LOST,
        cause=cause,
        counted=counts(cause, attempt, snapshot.agent),
        reason=Reason.LOST,
        message=message,
    )


def fail(reason: Reason, message: str) -> EndRun:
    """End a run as failed."""
    return EndRun(reason=reason, message=message, state=RunState.FAILED, output=None)


def fitting_cause(attempt: AttemptRow, cause: Cause | None) -> Cause | None:
    """Give the cause that a pod shows, corrected by what the attempt's row knows."""
    if cause is not None and attempt.claimed_at is not None:
        return _ONCE_RUNNING.get(cause, cause)
    return cause
