"""``suspend``: the open attempt hands off, and no other follows until it is taken back."""

from triage_contract.states import Cause, Outcome, Phase
from triage_operator.actions import Action, EndAttempt, RequestHandoff, Wait
from triage_operator.deciding.ending import end
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def suspend_attempt(snapshot: Snapshot, settings: DecidingSettings) -> RequestHandoff | EndAttempt | None:
    """Ask the open attempt to hand off, once; one that has not begun has nothing to hand off."""
    attempt = snapshot.open_attempt
    if attempt is None or not snapshot.run.spec.suspend:
        return None
    if attempt.claimed_at is None:
        return end(
            attempt,
            outcome=Outcome.HANDED_OFF,
            cause=Cause.SUSPENDED,
            reason=Reason.SUSPENDED,
            message="The run was suspended before the attempt began.",
        )
    if attempt.handoff_requested_at is not None:
        return None
    return RequestHandoff(
        reason=Reason.HANDING_OFF,
        message=f"The run was suspended: attempt {attempt.epoch} is to hand off.",
        serial=attempt.serial,
        cause=Cause.SUSPENDED,
    )


def stay_suspended(snapshot: Snapshot, settings: DecidingSettings) -> Action | None:
    """Start no attempt."""
    if not snapshot.run.spec.suspend:
        return None
    message = "The run is suspended; set spec.suspend to false to go on."
    return Wait(reason=Reason.SUSPENDED, message=message, phase=Phase.SUSPENDED, until=None)
