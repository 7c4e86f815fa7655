"""The verdict on situations that the recorded runs do not show: the run's row, the journal, repairs, odd events."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from support.golden import load, shown
from triage_contract.states import CallState, ToolKind, Verdict
from triage_contract.verdict import Call, CallFacts, EventFacts, Root, RootKind, RunFacts, verdict

DOCS = RunFacts(root=Root(name="docs", kind=RootKind.LLM))
PIPE = RunFacts(root=Root(name="pipe", kind=RootKind.SEQUENTIAL))

REPORT = EventFacts(author="user", said=True)
END = EventFacts(author="docs", end_of_agent=True)
FINAL = EventFacts(author="docs", said=True, final=True, text="Filed issue 41.")


def calling(*ids: str, author: str = "docs", branch: str = "", waits: bool = False) -> EventFacts:
    calls = tuple(Call(id=it, name=it, long_running=waits, branch=branch) for it in ids)
    return EventFacts(author=author, branch=branch, calls=calls, said=True)


def answering(*ids: str, author: str = "docs", branch: str = "") -> EventFacts:
    return EventFacts(author=author, branch=branch, answers=ids, said=True)


def row(call_id: str, state: CallState | None, kind: ToolKind | None = ToolKind.UNDECLARED) -> CallFacts:
    return CallFacts(key=call_id, id=call_id, name=call_id, state=state, kind=kind)


def judged(events: Sequence[EventFacts], journal: Sequence[CallFacts] | None = None) -> str:
    return shown(verdict(events, DOCS, journal))


def test_no_row_and_no_event_is_unknown() -> None:
    assert verdict([], None, None).verdict is Verdict.UNKNOWN


def test_our_row_without_events_is_not_started() -> None:
    assert verdict([], RunFacts(root=None), []).verdict is Verdict.NOT_STARTED


def test_journaled_calls_without_events_are_unknown_since_a_start_would_repeat_them() -> None:
    assert verdict([], DOCS, [row("file", CallState.DONE)]).verdict is Verdict.UNKNOWN


def test_events_without_a_row_are_judged_but_nobody_has_the_last_word() -> None:
    assert verdict([REPORT, FINAL, END], None, None).verdict is Verdict.INTERRUPTED


def test_run_whose_root_nobody_recorded_is_interrupted() -> None:
    assert verdict([REPORT], RunFacts(root=None), []).verdict is Verdict.INTERRUPTED


@pytest.mark.parametrize("kind", [ToolKind.READ_ONLY, ToolKind.IDEMPOTENT])
def test_begun_call_that_changes_nothing_more_runs_again_under_its_key(kind: ToolKind) -> None:
    assert judged([REPORT, calling("file")], [row("file", CallState.BEGUN, kind)]) == "interrupted [file]"


@pytest.mark.parametrize("state", [CallState.BEGUN, None])
def test_begun_call_of_a_kind_from_a_later_release_is_in_doubt(state: CallState | None) -> None:
    assert judged([REPORT, calling("file")], [row("file", state, None)]) == "in_doubt [file: park]"


def test_done_call_of_a_kind_from_a_later_release_is_answered_from_the_journal() -> None:
    assert judged([REPORT, calling("file")], [row("file", CallState.DONE, None)]) == "interrupted [file]"


def test_begun_call_that_was_answered_since_is_no_longer_in_doubt() -> None:
    events = [REPORT, calling("file"), answering("file", author="user")]
    assert judged(events, [row("file", CallState.BEGUN, None)]) == "interrupted"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (CallState.GATED, "interrupted"),
        (CallState.BEGUN, "in_doubt [pay: park]"),
        (CallState.DONE, "interrupted"),
    ],
)
def test_confirmed_call_that_was_killed_is_in_doubt_although_its_gate_is_stored_as_an_answer(
    state: CallState, expected: str
) -> None:
    asked = EventFacts(author="docs", said=True, answers=("pay",), gated=frozenset({"pay"}))
    asking = EventFacts(
        author="docs", calls=(Call(id="gate", name="adk_request_confirmation", long_running=True),), said=True
    )
    events = [REPORT, calling("pay"), asked, asking, answering("gate", author="user")]
    assert judged(events, [row("pay", state)]) == expected


@pytest.mark.parametrize(
    ("journal", "expected"),
    [
        (None, "waiting [ask]"),
        ([row("ask", CallState.DONE)], "waiting [ask]"),
        ([row("ask", CallState.BEGUN)], "in_doubt [ask: park]"),
        ([row("ask", CallState.BEGUN, ToolKind.READ_ONLY)], "wedged [ask]"),
        ([], "wedged [ask]"),
    ],
    ids=["no journal", "tool returned", "tool killed", "tool that reads killed", "tool never began"],
)
def test_long_running_call_waits_only_if_its_tool_returned(
    journal: list[CallFacts] | None, expected: str
) -> None:
    assert judged([REPORT, calling("ask", waits=True)], journal) == expected


def test_long_running_call_with_a_stored_response_waits_whatever_its_row_says() -> None:
    events = [REPORT, calling("ask", waits=True), answering("ask")]
    assert judged(events, [row("ask", CallState.BEGUN)]) == "waiting [ask]"


def test_gate_waits_without_a_row() -> None:
    assert judged([REPORT, calling("adk_request_input", waits=True)], []) == "waiting [adk_request_input]"


def test_call_whose_id_comes_again_is_open_again() -> None:
    events = [REPORT, calling("call_0"), answering("call_0"), calling("call_0")]
    assert judged(events) == "interrupted [call_0]"


def test_compaction_between_a_call_and_its_kill_is_no_event_of_the_agent() -> None:
    compaction = EventFacts(author="docs", said=True, compaction=True)
    assert judged([REPORT, calling("file"), compaction]) == "interrupted [file]"


def test_confirmed_call_runs_although_the_response_that_asked_was_lost() -> None:
    golden = load("confirmation")
    without_response = [event for at, event in enumerate(golden.prefix(5)) if at != 2]
    assert [call.name for event in without_response for call in event.calls] == [
        "file_issue",
        "adk_request_confirmation",
    ]
    assert judged(without_response) == "interrupted [file_issue]"


def test_sibling_of_a_call_that_was_answered_from_outside_still_runs() -> None:
    assert judged([REPORT, calling("a", "b"), answering("a", author="user")]) == "interrupted [b]"


def test_sibling_of_a_long_running_call_does_not_run_after_the_answer() -> None:
    both = EventFacts(
        author="docs",
        said=True,
        calls=(Call(id="ask", name="ask", long_running=True), Call(id="b", name="b")),
    )
    assert judged([REPORT, both]) == "waiting [ask] lost [b]"
    assert judged([REPORT, both, answering("ask", author="user")]) == "wedged [b]"


def test_answer_to_another_branch_passes_over_nothing() -> None:
    events = [
        REPORT,
        calling("read", author="reader", branch="fan.reader"),
        calling("ask", author="filer", branch="fan.filer", waits=True),
        answering("ask", author="user"),
    ]
    assert judged(events) == "interrupted [read]"


def test_answer_inside_a_tool_passes_over_its_call_not() -> None:
    events = [
        REPORT,
        calling("tool"),
        calling("inner", author="flow", branch="tool@tool"),
        answering("inner", author="user", branch="tool@tool"),
    ]
    assert judged(events) == "interrupted [tool]"


def test_wedged_call_names_where_its_answer_belongs() -> None:
    call = Call(id="read", name="read", branch="fan.reader", scope="task")
    event = EventFacts(author="reader", branch="fan.reader", scope="task", calls=(call,), said=True)
    judgement = verdict([REPORT, event, EventFacts(author="reader", branch="fan.reader")], DOCS, None)
    assert (judgement.verdict, judgement.calls) == (Verdict.WEDGED, (call,))


def test_step_that_ended_without_its_call_cannot_be_repaired() -> None:
    """A before_agent_callback that writes state does this to a step of a SequentialAgent at a resume."""
    events = [
        REPORT,
        EventFacts(author="pipe", nodes=()),
        calling("file", author="filer"),
        EventFacts(author="filer"),
    ]
    assert shown(verdict(events, PIPE, None)) == "wedged [file]"
    ended = [*events, EventFacts(author="filer", end_of_agent=True)]
    assert shown(verdict(ended, PIPE, None)) == "failed [file] (sealed)"


def test_reply_that_was_cut_short_is_a_last_word() -> None:
    assert judged([REPORT, replace(FINAL, error_code="MAX_TOKENS")]) == "finished"


def test_content_of_an_after_agent_callback_is_a_last_word() -> None:
    assert judged([REPORT, FINAL, END, FINAL]) == "finished"


def test_agent_that_ends_without_a_word_has_finished() -> None:
    assert judged([REPORT, END]) == "finished (marked)"


def test_message_after_the_end_is_not_answered_yet() -> None:
    assert judged([REPORT, FINAL, END, REPORT]) == "interrupted"


def test_abort_wins_over_open_calls() -> None:
    aborted = EventFacts(author="docs", error_code="INVOCATION_ABORTED")
    assert judged([REPORT, calling("file"), aborted], [row("file", CallState.BEGUN, None)]) == "aborted"


def test_why_names_tools_and_never_repeats_the_text_of_an_error() -> None:
    error = EventFacts(author="docs", error_code="ClientError", error_message="key=secret")
    assert "secret" not in verdict([REPORT, error], DOCS, None).why
    assert (
        verdict([REPORT, calling("file", "file2")], DOCS, None).why == "Without a stored result: file, file2."
    )
