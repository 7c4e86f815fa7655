"""What is not resumed by hand, and why."""

from typing import Final

from triage_agent.exceptions import RefusedError
from triage_contract.states import Verdict
from triage_contract.verdict import Judgement, Remedy

_RESUMABLE: Final = frozenset({Verdict.NOT_STARTED, Verdict.INTERRUPTED, Verdict.WEDGED, Verdict.FAILED})


def refuse_unless_open(judgement: Judgement, session_id: str, invocation_id: str) -> None:
    """Refuse an invocation that is over, waits for somebody, or is not there.

    Raises:
        RefusedError: one line that says which.
    """
    if judgement.verdict is Verdict.UNKNOWN:
        raise RefusedError(f"invocation {invocation_id!r} is not in session {session_id!r}")
    if judgement.verdict is Verdict.FINISHED:
        raise RefusedError(f"invocation {invocation_id!r} is already finished: {judgement.why}")
    if any(doubt.remedy is Remedy.ASK for doubt in judgement.doubts):
        return
    if judgement.verdict not in _RESUMABLE or judgement.sealed:
        what = judgement.verdict.replace("_", " ")
        raise RefusedError(
            f"invocation {invocation_id!r} is {what}, and a resume would not change that: {judgement.why}"
        )
