"""An open attempt that needs nothing is watched."""

from triage_contract.database.rows import AttemptRow
from triage_operator.actions import Wait
from triage_operator.diagnosing import Diagnosis, PodState, diagnose
from triage_operator.phases import standing_phase
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def watch(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Say what the open attempt does."""
    attempt = snapshot.open_attempt
    if attempt is None:
        return None
    pod = snapshot.pod_of(attempt)
    diagnosis = None if pod is None else diagnose(pod)
    reason, message = _seen(snapshot, attempt, diagnosis)
    return Wait(reason=reason, message=message, phase=standing_phase(snapshot), until=None)


def _seen(snapshot: Snapshot, attempt: AttemptRow, diagnosis: Diagnosis | None) -> tuple[Reason, str]:
    leaving = diagnosis is not None and diagnosis.state is PodState.LEAVING
    if attempt.handoff_requested_at is not None or leaving:
        return Reason.HANDING_OFF, f"Attempt {attempt.epoch} is to hand off at its next step."
    if attempt.pod is None:
        return Reason.BY_HAND, f"Attempt {attempt.epoch} was begun by hand and runs outside of the cluster."
    repaired = next((repair for repair in snapshot.repairs if repair.epoch == attempt.epoch), None)
    if repaired is not None:
        return Reason.REPAIRED, f"Attempt {attempt.epoch} is at work, after a repair: {repaired.message}"
    if attempt.claimed_at is not None:
        return Reason.RUNNING, f"Attempt {attempt.epoch} is at work{_after(snapshot)}."
    if diagnosis is not None and diagnosis.held_up is not None:
        return diagnosis.held_up, diagnosis.message
    return Reason.PENDING, f"Attempt {attempt.epoch} starts{_after(snapshot)}."


def _after(snapshot: Snapshot) -> str:
    before = snapshot.attempts[-2].cause if len(snapshot.attempts) > 1 else None
    return "" if before is None else f", after {before}"
