"""``spec.decisions``: a person decides about a call in doubt, and the run goes on with that, once."""

from collections.abc import Iterator

from triage_contract.api.run import Decision
from triage_contract.states import CallState, DecisionAction
from triage_operator.actions import CarryOutDecision, EndRun
from triage_operator.deciding.ending import fail
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import JournaledCall, Snapshot


def carry_out(snapshot: Snapshot, settings: DecidingSettings) -> CarryOutDecision | EndRun | None:
    """Carry out the first decision about a call that is in doubt, and still as the attempt named left it."""
    judgement = snapshot.judgement
    if judgement is None:
        return None
    doubtful = {doubt.key for doubt in judgement.doubts}
    for decision, call in _matches(snapshot):
        if call is None or call.state != CallState.BEGUN or call.epoch != decision.attempt:
            continue
        # A person may change their mind until the call runs again.
        if call.key in doubtful or (call.cleared and decision.action is not DecisionAction.RUN_AGAIN):
            return _carried_out(decision, call)
    return None


def ignored(snapshot: Snapshot) -> Iterator[tuple[Decision, str]]:
    """Give the decisions that will do nothing, each with a sentence that says why.

    One about a call that a later attempt began has been carried out, or came too late: nobody can tell any more.
    """
    if snapshot.judgement is None:
        return
    for decision, call in _matches(snapshot):
        if call is None:
            yield decision, f"no call {decision.call} is journaled."
        elif call.epoch < decision.attempt:
            yield decision, f"call {call.key} was begun by attempt {call.epoch}, not {decision.attempt}."
        elif call.epoch == decision.attempt and call.state != CallState.BEGUN and not call.decided:
            yield decision, f"call {call.key} of {call.tool} is {call.state}, not in doubt."


def _matches(snapshot: Snapshot) -> Iterator[tuple[Decision, JournaledCall | None]]:
    calls = {call.key: call for call in snapshot.journal}
    for decision in snapshot.run.spec.decisions:
        yield decision, calls.get(decision.call)


def _carried_out(decision: Decision, call: JournaledCall) -> CarryOutDecision | EndRun:
    about = f"call {call.key} of {call.tool}, begun by attempt {call.epoch}"
    if decision.action is DecisionAction.FAIL:
        return fail(Reason.IN_DOUBT, f"A person decided that the run fails, about {about}.")
    what = "was done" if decision.action is DecisionAction.DONE else "runs again"
    return CarryOutDecision(
        reason=Reason.DECIDED,
        message=f"A person decided that {about}, {what}.",
        call=call.key,
        epoch=call.epoch,
        decided=decision.action,
        result=decision.result or {},
    )
