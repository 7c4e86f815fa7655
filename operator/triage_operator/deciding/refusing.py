"""Some runs fail at once, since another attempt would end as the last one did."""

from typing import Final

from triage_contract.states import Cause, Outcome, Verdict
from triage_operator.actions import EndRun
from triage_operator.deciding.ending import fail
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

ERROR_LENGTH: Final = 300
"""Characters of ADK's own error text that are passed on."""


def refuse(snapshot: Snapshot, settings: DecidingSettings) -> EndRun | None:
    """Fail a run that is misconfigured, unknown, or whose pod did not start in time."""
    newest, judgement = snapshot.newest, snapshot.judgement
    if judgement is not None and judgement.verdict is Verdict.UNKNOWN:
        return fail(Reason.UNKNOWN_INVOCATION, judgement.why)
    if judgement is not None and judgement.verdict is Verdict.FAILED and judgement.sealed:
        # The tree ended with the error: ADK would return at once, for ever.
        error = f" {judgement.error_message[:ERROR_LENGTH]}" if judgement.error_message else ""
        return fail(Reason.FAILED, f"{judgement.why}{error}")
    if newest is None:
        return None
    if newest.outcome is Outcome.UNKNOWN_INVOCATION:
        return fail(Reason.UNKNOWN_INVOCATION, newest.error or "The agent does not know the invocation.")
    if newest.cause is Cause.BAD_CONFIG:
        return fail(Reason.BAD_CONFIGURATION, newest.error or "The agent cannot be run as it is configured.")
    # An attempt is ended on purpose before its claim only for this, or for what was looked at before.
    if newest.outcome is Outcome.CANCELLED and newest.claimed_at is None:
        return fail(
            Reason.START_DEADLINE_EXCEEDED, newest.error or "The agent container did not start in time."
        )
    return None
