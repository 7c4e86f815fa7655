"""An attempt is lost with its pod: when that ended, is gone, or outstays the grace period of its deletion."""

from datetime import datetime, timedelta
from typing import Final

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, ExitCode, Outcome
from triage_operator.actions import EndAttempt
from triage_operator.budgeting import counts
from triage_operator.deciding.ending import end, fitting_cause, lose
from triage_operator.diagnosing import Diagnosis, PodState, cause_of_absence, diagnose
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

_OUTCOMES: Final[dict[int | None, Outcome]] = {
    ExitCode.WAITING: Outcome.WAITING,
    ExitCode.ALREADY_FINISHED: Outcome.FINISHED,
    ExitCode.UNKNOWN_INVOCATION: Outcome.UNKNOWN_INVOCATION,
    ExitCode.IN_DOUBT: Outcome.IN_DOUBT,
    ExitCode.BAD_CONFIGURATION: Outcome.BAD_CONFIGURATION,
}
"""Exit codes that say how an attempt ended that could not write it into its row."""


def lose_with_pod(snapshot: Snapshot, settings: DecidingSettings) -> EndAttempt | None:
    """End an open attempt by what its pod says, or by its absence."""
    attempt = snapshot.open_attempt
    if attempt is None:
        return None
    pod = snapshot.pod_of(attempt)
    if pod is None:
        return _lose_absent(snapshot, attempt)
    diagnosis = diagnose(pod)
    if diagnosis.state is PodState.ENDED:
        return _end_with(snapshot, attempt, diagnosis)
    due = _grace_over_at(diagnosis, settings)
    if due is not None and snapshot.now >= due:
        return lose(snapshot, attempt, diagnosis.cause, diagnosis.message)
    return None


def lose_with_pod_at(snapshot: Snapshot, settings: DecidingSettings) -> datetime | None:
    """Give when the grace period of the pod's deletion is over; None: its deletion was not asked for."""
    attempt = snapshot.open_attempt
    pod = None if attempt is None else snapshot.pod_of(attempt)
    return None if pod is None else _grace_over_at(diagnose(pod), settings)


def _grace_over_at(diagnosis: Diagnosis, settings: DecidingSettings) -> datetime | None:
    if diagnosis.ends_at is None:
        return None
    return diagnosis.ends_at + timedelta(seconds=settings.deletion_slack_seconds)


def _lose_absent(snapshot: Snapshot, attempt: AttemptRow) -> EndAttempt | None:
    last = snapshot.last_pods.get(attempt.epoch)
    was_made = attempt.pod_uid is not None or attempt.claimed_at is not None or last is not None
    if attempt.pod is None or not was_made:
        # By hand, or still to be made.
        return None
    by_row = Cause.VANISHED if attempt.sigterm_at is None else Cause.SIGTERM
    cause = (None if last is None else cause_of_absence(last)) or by_row
    return lose(snapshot, attempt, cause, f"Pod {attempt.pod} is gone.")


def _end_with(snapshot: Snapshot, attempt: AttemptRow, diagnosis: Diagnosis) -> EndAttempt:
    cause = fitting_cause(attempt, diagnosis.cause)
    return end(
        attempt,
        outcome=_OUTCOMES.get(diagnosis.exit_code, Outcome.LOST),
        cause=cause,
        counted=cause is not None and counts(cause, attempt, snapshot.agent),
        exit_code=diagnosis.exit_code,
        confirmed=diagnosis.confirmed,
        reason=Reason.LOST,
        message=diagnosis.message,
    )
