"""Some runs fail at once, since another attempt would end as the last one did."""

from triage_contract.states import Cause, Outcome, RunState, Verdict
from triage_operator.actions import EndRun
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def refuse(snapshot: Snapshot, settings: DecidingSettings) -> EndRun | None:
    """Fail a run that is misconfigured, unknown, or whose pod did not start in time."""
    newest, judgement = snapshot.newest, snapshot.judgement
    if judgement is not None and judgement.verdict is Verdict.UNKNOWN:
        return _fail(Reason.UNKNOWN_INVOCATION, judgement.why)
    if judgement is not None and judgement.verdict is Verdict.FAILED and judgement.sealed:
        # The tree ended with the error: ADK would return at once, for ever.
        return _fail(Reason.FAILED, judgement.why)
    if newest is None:
        return None
    if newest.outcome is Outcome.UNKNOWN_INVOCATION:
        return _fail(Reason.UNKNOWN_INVOCATION, newest.error or "The agent does not know the invocation.")
    if Outcome.BAD_CONFIGURATION is newest.outcome or newest.cause is Cause.BAD_CONFIG:
        return _fail(Reason.BAD_CONFIGURATION, newest.error or "The agent cannot be run as it is configured.")
    # An attempt is ended on purpose before its claim only for this, or for what was looked at before.
    if newest.outcome is Outcome.CANCELLED and newest.claimed_at is None:
        return _fail(
            Reason.START_DEADLINE_EXCEEDED, newest.error or "The agent container did not start in time."
        )
    return None


def _fail(reason: Reason, message: str) -> EndRun:
    return EndRun(reason=reason, message=message, state=RunState.FAILED, output=None)
