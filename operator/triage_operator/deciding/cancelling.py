"""A run that its user gave up is cancelled: by ``cancel``, or by aborting its invocation."""

from triage_contract.states import RunState, Verdict
from triage_operator.actions import EndRun
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def cancel(snapshot: Snapshot, settings: DecidingSettings) -> EndRun | None:
    """Cancel a run without an open attempt."""
    run, judgement = snapshot.run, snapshot.judgement
    if run.spec.cancel:
        reason, message = Reason.CANCELLED, "The run was cancelled."
    elif judgement is not None and judgement.verdict is Verdict.ABORTED:
        reason, message = Reason.ABORTED, judgement.why
    else:
        return None
    return EndRun(reason=reason, message=message, state=RunState.CANCELLED, output=None)
