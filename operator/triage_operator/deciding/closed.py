"""A run that is over stays so, and goes when its time to live is over."""

from datetime import timedelta
from typing import Final

from triage_contract.database.rows import RunRow
from triage_contract.states import Phase, RunState
from triage_operator.actions import DeleteRun, Wait
from triage_operator.phases import PHASES
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

_REASONS: Final = {
    Phase.SUCCEEDED: Reason.COMPLETED,
    Phase.FAILED: Reason.FAILED,
    Phase.CANCELLED: Reason.CANCELLED,
}
"""Reasons of runs that somebody else ended."""


def keep_closed(snapshot: Snapshot, settings: DecidingSettings) -> Wait | DeleteRun | None:
    """Show how the run ended, or delete it."""
    row, ttl = snapshot.row, snapshot.run.spec.ttl_seconds_after_finished
    if row is None or row.state is RunState.ACTIVE:
        return None
    phase = PHASES[row.state]
    reason, message = _recorded(row, phase)
    if ttl is None or row.ended_at is None:
        return Wait(reason=reason, message=message, phase=phase, until=None)
    due = row.ended_at + timedelta(seconds=ttl)
    if snapshot.now < due:
        return Wait(reason=reason, message=message, phase=phase, until=due)
    return DeleteRun(reason=Reason.EXPIRED, message=f"The run ended {ttl} s ago, its time to live.")


def _recorded(row: RunRow, phase: Phase) -> tuple[Reason, str]:
    """Read what ``EndRun.recorded`` wrote."""
    word, _, message = (row.reason or "").partition(": ")
    if word in set(Reason):
        return Reason(word), message
    return _REASONS[phase], row.reason or f"The run has ended: {row.state}."
