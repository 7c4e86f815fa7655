"""The next attempt: the first one starts, each further one resumes."""

from triage_contract.states import Verdict
from triage_operator.actions import OpenAttempt
from triage_operator.memory import next_limit
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def open_next(snapshot: Snapshot, settings: DecidingSettings) -> OpenAttempt | None:
    """Open the next attempt. That nothing speaks against it is settled before."""
    if snapshot.agent is None or snapshot.open_attempt is not None:
        return None
    newest, judgement = snapshot.newest, snapshot.judgement
    if newest is None:
        reason, message = Reason.STARTING, "The run starts."
    elif judgement is not None and judgement.verdict is Verdict.WEDGED:
        reason, message = Reason.REPAIRED, f"The run is repaired and resumed: {judgement.why}"
    else:
        reason = Reason.RESUMING
        message = f"The run is resumed after {newest.cause or newest.outcome}."
    return OpenAttempt(
        reason=reason,
        message=message,
        observed_epoch=0 if snapshot.fence is None else snapshot.fence.epoch,
        memory_limit_bytes=next_limit(snapshot.agent, snapshot.attempts),
    )
