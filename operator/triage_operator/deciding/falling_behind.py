"""A database that knows less than the run's status is an older copy: an epoch used before must not be used again.

What attempts did after the copy was made is known to nobody, so that a resume could do it twice.
"""

from triage_contract.states import Phase
from triage_operator.actions import Wait
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def stop_behind(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Stop a run, unless it is to be cancelled, while its status shows an attempt that the database does not know."""
    shown = max((attempt.epoch for attempt in snapshot.run.status.attempts), default=0)
    known = max(
        snapshot.newest.epoch if snapshot.newest is not None else 0,
        snapshot.fence.epoch if snapshot.fence is not None else 0,
    )
    if shown <= known or snapshot.run.spec.cancel:
        return None
    message = (
        f"The status shows attempt {shown}, but the database knows only {known}: it seems to be an older copy."
        " Restore the newer one and the run goes on; or cancel the run; or, where what it did since may happen again,"
        " clear the attempts in its status."
    )
    # What is over stays so, whatever the database has forgotten of it.
    phase = snapshot.run.status.phase
    phase = phase if phase is not None and phase.terminal else Phase.WAITING
    return Wait(reason=Reason.DATABASE_BEHIND, message=message, phase=phase, until=None)
