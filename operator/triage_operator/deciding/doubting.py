"""Calls in doubt that nobody can settle, of an agent that wants its runs to fail then."""

from triage_contract.verdict import Remedy
from triage_operator.actions import EndRun
from triage_operator.deciding.ending import fail
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def fail_in_doubt(snapshot: Snapshot, settings: DecidingSettings) -> EndRun | None:
    """Fail a run by ``resume.inDoubt: Fail``."""
    judgement = snapshot.judgement
    if judgement is None or all(doubt.remedy is not Remedy.FAIL for doubt in judgement.doubts):
        return None
    return fail(Reason.IN_DOUBT, f"{judgement.why} The agent's resume.inDoubt is Fail.")
