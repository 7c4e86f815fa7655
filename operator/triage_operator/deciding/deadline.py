"""A run that is not over by its deadline fails, whatever it does or waits for."""

from datetime import datetime, timedelta

from triage_contract.states import RunState
from triage_operator.actions import EndRun
from triage_operator.deciding.ending import fail
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def enforce_deadline(snapshot: Snapshot, settings: DecidingSettings) -> EndRun | None:
    """Fail a run whose deadline is over."""
    deadline = deadline_at(snapshot, settings)
    if deadline is None or snapshot.now < deadline:
        return None
    seconds = snapshot.run.spec.deadline_seconds
    return fail(Reason.DEADLINE_EXCEEDED, f"The run was not over {seconds} s after its creation.")


def deadline_at(snapshot: Snapshot, settings: DecidingSettings) -> datetime | None:
    """Give when the deadline is over; None: there is none, or the run has ended."""
    seconds = snapshot.run.spec.deadline_seconds
    ended = snapshot.row is not None and snapshot.row.state is not RunState.ACTIVE
    if seconds is None or ended:
        return None
    return snapshot.run.metadata.creation_timestamp + timedelta(seconds=seconds)
