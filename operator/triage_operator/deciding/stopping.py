"""An attempt whose run is over, or is to be, ends at once, and its pod is deleted."""

from triage_contract.states import Outcome, RunState
from triage_operator.actions import EndAttempt
from triage_operator.deciding.deadline import deadline_at
from triage_operator.deciding.ending import end
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def stop(snapshot: Snapshot, settings: DecidingSettings) -> EndAttempt | None:
    """End the open attempt for its run's sake."""
    attempt, run = snapshot.open_attempt, snapshot.run
    if attempt is None:
        return None
    deadline = deadline_at(snapshot, settings)
    if run.spec.cancel:
        reason, message = Reason.CANCELLED, "The run was cancelled."
    elif snapshot.row is not None and snapshot.row.state is not RunState.ACTIVE:
        reason, message = Reason.CANCELLED, f"The run is {snapshot.row.state} already."
    elif deadline is not None and snapshot.now >= deadline:
        reason, message = Reason.DEADLINE_EXCEEDED, "The run's deadline is over."
    else:
        return None
    return end(attempt, outcome=Outcome.CANCELLED, reason=reason, message=message)
