"""The phase that a run is in, from its rows."""

from typing import Final

from triage_contract.states import Phase, RunState
from triage_operator.snapshot import Snapshot

PHASES: Final = {
    RunState.SUCCEEDED: Phase.SUCCEEDED,
    RunState.FAILED: Phase.FAILED,
    RunState.CANCELLED: Phase.CANCELLED,
}
"""Phases of runs that are over."""


def standing_phase(snapshot: Snapshot) -> Phase:
    """Give the phase of a run that is at work, or about to be."""
    if len(snapshot.attempts) > 1:
        return Phase.RECOVERING
    if snapshot.open_attempt is not None:
        return Phase.PENDING if snapshot.open_attempt.claimed_at is None else Phase.RUNNING
    return Phase.PENDING if snapshot.newest is None else Phase.RECOVERING
