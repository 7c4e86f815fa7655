"""What is to be done about a call that began and whose end is not known: the table of kinds."""

from dataclasses import replace

import pytest

from triage_contract.states import CallState, Doubt, InDoubt, ToolKind
from triage_contract.verdict import CallFacts, EventFacts, Root, RootKind, RunFacts, verdict
from triage_contract.verdict.doubts import Remedy, remedy_for

BEGUN = CallFacts(key="file", id="file", name="file", state=CallState.BEGUN, kind=ToolKind.UNDECLARED)
ASKED = replace(BEGUN, kind=ToolKind.RECONCILE)

CASES = [
    ("reading runs again", replace(BEGUN, kind=ToolKind.READ_ONLY), InDoubt.FAIL, Remedy.RUN_AGAIN),
    ("a keyed effect runs again", replace(BEGUN, kind=ToolKind.IDEMPOTENT), InDoubt.FAIL, Remedy.RUN_AGAIN),
    ("an undeclared one waits", BEGUN, InDoubt.PARK, Remedy.PARK),
    ("or runs again", BEGUN, InDoubt.RETRY, Remedy.RUN_AGAIN),
    ("or fails the run", BEGUN, InDoubt.FAIL, Remedy.FAIL),
    ("a person said that it may run", replace(BEGUN, cleared=True), InDoubt.PARK, Remedy.RUN_AGAIN),
    ("somebody can be asked", ASKED, InDoubt.RETRY, Remedy.ASK),
    ("it raised, and somebody can be asked", replace(ASKED, doubt=Doubt.RAISED), InDoubt.PARK, Remedy.ASK),
    ("who was asked does not know", replace(ASKED, doubt=Doubt.UNKNOWN), InDoubt.PARK, Remedy.PARK),
    (
        "it did not happen, but its process may live",
        replace(ASKED, doubt=Doubt.NOT_HAPPENED),
        InDoubt.PARK,
        Remedy.PARK,
    ),
    (
        "the process is dead since: ask again",
        replace(ASKED, doubt=Doubt.NOT_HAPPENED, confirmed=True),
        InDoubt.PARK,
        Remedy.ASK,
    ),
    (
        "nothing new is known since it was asked",
        replace(ASKED, doubt=Doubt.UNKNOWN, confirmed=True, asked_confirmed=True),
        InDoubt.PARK,
        Remedy.PARK,
    ),
    ("a kind of a later release", replace(BEGUN, kind=None), InDoubt.RETRY, Remedy.PARK),
    ("a state of a later release", replace(BEGUN, state=None), InDoubt.RETRY, Remedy.PARK),
    ("it is done", replace(BEGUN, state=CallState.DONE), InDoubt.FAIL, None),
    ("it is settled", replace(BEGUN, state=CallState.SETTLED), InDoubt.FAIL, None),
]


@pytest.mark.parametrize(
    ("row", "policy", "remedy"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_to_be_done_about_a_call(row: CallFacts, policy: InDoubt, remedy: Remedy | None) -> None:
    assert remedy_for(row, policy) is remedy


def test_call_inside_an_agent_that_runs_as_a_tool_is_in_doubt_although_no_event_holds_it() -> None:
    run = RunFacts(root=Root(name="docs", kind=RootKind.LLM))
    judgement = verdict([EventFacts(author="user", said=True)], run, [BEGUN])
    assert [doubt.key for doubt in judgement.doubts] == ["file"]
