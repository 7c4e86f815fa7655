"""Finished is finished: the run succeeded, also where it was cancelled or its deadline passed since."""

from triage_contract.states import RunState, Verdict
from triage_operator.actions import EndRun
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def finish(snapshot: Snapshot, settings: DecidingSettings) -> EndRun | None:
    """Complete a run whose invocation is finished, without asking the model again."""
    judgement = snapshot.judgement
    if judgement is None or judgement.verdict is not Verdict.FINISHED:
        return None
    filed = "" if snapshot.issue is None else f" and filed issue {snapshot.issue}"
    return EndRun(
        reason=Reason.COMPLETED,
        message=f"The agent finished{filed}.",
        state=RunState.SUCCEEDED,
        output=judgement.text,
    )
