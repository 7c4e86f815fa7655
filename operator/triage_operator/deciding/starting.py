"""An attempt has to start in time. A pod that cannot fails its run; a process that never claims is lost."""

from datetime import datetime, timedelta

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome
from triage_operator.actions import EndAttempt
from triage_operator.deciding.ending import end, lose
from triage_operator.diagnosing import Diagnosis, PodState, diagnose
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def enforce_start(snapshot: Snapshot, settings: DecidingSettings) -> EndAttempt | None:
    """End an open attempt that did not start in time."""
    due = enforce_start_at(snapshot, settings)
    attempt = snapshot.open_attempt
    if attempt is None or due is None or snapshot.now < due:
        return None
    if attempt.pod is None:
        return lose(snapshot, attempt, Cause.VANISHED, "The attempt was begun by hand, and never claimed.")
    diagnosis = _diagnosis(snapshot, attempt)
    if diagnosis is not None and diagnosis.state is PodState.RUNNING:
        seconds = settings.claim_limit_seconds
        message = f"The agent container ran for {seconds:g} s and its process did not claim the attempt."
        return lose(snapshot, attempt, Cause.UNRESPONSIVE, message)
    refusal = snapshot.refusal
    why = diagnosis.message if diagnosis is not None else refusal.message if refusal else "there is no pod"
    return end(
        attempt,
        outcome=Outcome.CANCELLED,
        reason=Reason.START_DEADLINE_EXCEEDED,
        message=f"The agent container did not start in time: {why}",
    )


def enforce_start_at(snapshot: Snapshot, settings: DecidingSettings) -> datetime | None:
    """Give when the open attempt has to have started; None: it has, or there is no limit."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.claimed_at is not None:
        return None
    if attempt.pod is None:
        return attempt.created_at + timedelta(seconds=settings.claim_limit_seconds)
    diagnosis = _diagnosis(snapshot, attempt)
    if diagnosis is not None and diagnosis.state in (PodState.LEAVING, PodState.ENDED):
        return None
    if diagnosis is not None and diagnosis.state is PodState.RUNNING:
        since = max(diagnosis.since or attempt.created_at, snapshot.life.reachable_since)
        return since + timedelta(seconds=settings.claim_limit_seconds)
    if snapshot.run.spec.start_deadline_seconds is not None:
        return attempt.created_at + timedelta(seconds=snapshot.run.spec.start_deadline_seconds)
    since_blocked = _blocked_since(snapshot, attempt, diagnosis)
    return None if since_blocked is None else since_blocked + timedelta(seconds=settings.start_limit_seconds)


def _blocked_since(snapshot: Snapshot, attempt: AttemptRow, diagnosis: Diagnosis | None) -> datetime | None:
    """Give since when a start is held up by more than want of room; None: it is not. A pod waits for a node,
    or a quota, without limit: others give room back."""
    if diagnosis is not None:
        return diagnosis.since
    refusal = snapshot.refusal
    return attempt.created_at if refusal is not None and not refusal.passing else None


def _diagnosis(snapshot: Snapshot, attempt: AttemptRow) -> Diagnosis | None:
    pod = snapshot.pod_of(attempt)
    return None if pod is None else diagnose(pod)
