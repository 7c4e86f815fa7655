"""Reading stored events, the run's record of its root and rows of the journal."""

from typing import Any

import pytest

from triage_contract.states import CallState, Doubt, ToolKind
from triage_contract.verdict import Call, CallFacts, EventFacts, Root, RootKind, event_facts


def test_empty_event_says_nothing() -> None:
    assert event_facts({}) == EventFacts()


def test_calls_carry_what_an_answer_needs() -> None:
    event = {
        "author": "filer",
        "branch": "fan.filer",
        "isolation_scope": "adk-1",
        "long_running_tool_ids": ["adk-3"],
        "content": {
            "parts": [
                {"text": "First,", "thought": True},
                {"function_call": {"id": "adk-2", "name": "read_page", "args": {"name": "tokens"}}},
                {"function_call": {"id": "adk-3", "name": "ask_editor"}},
            ]
        },
    }
    facts = event_facts(event)
    assert facts.calls == (
        Call(id="adk-2", name="read_page", branch="fan.filer", scope="adk-1"),
        Call(id="adk-3", name="ask_editor", long_running=True, branch="fan.filer", scope="adk-1"),
    )
    assert facts.text is None
    assert not facts.final


@pytest.mark.parametrize(
    ("parts", "actions", "final"),
    [
        ([{"text": "Done."}], {}, True),
        ([], {}, True),
        ([{"text": "Hm.", "thought": True}], {}, True),
        ([{"function_call": {"id": "1", "name": "read_page"}}], {}, False),
        ([{"function_response": {"id": "1", "name": "read_page", "response": {}}}], {}, False),
        (
            [{"function_response": {"id": "1", "name": "exit_loop", "response": {}}}],
            {"skip_summarization": True},
            True,
        ),
        (
            [
                {
                    "function_response": {
                        "id": "1",
                        "name": "finish_task",
                        "response": {"result": "Task completed."},
                    }
                }
            ],
            {},
            True,
        ),
        (
            [{"function_response": {"id": "1", "name": "finish_task", "response": {"error": "no title"}}}],
            {},
            False,
        ),
        ([{"text": "Let me see."}, {"executable_code": {"code": "1+1"}}], {}, False),
        ([{"code_execution_result": {"output": "2"}}], {}, False),
    ],
    ids=[
        "text",
        "empty reply",
        "thought",
        "call",
        "response",
        "response without summary",
        "task finished",
        "task corrected",
        "code",
        "result of code",
    ],
)
def test_last_words(parts: list[Any], actions: dict[str, Any], final: bool) -> None:
    assert event_facts({"content": {"parts": parts}, "actions": actions}).final is final


def test_event_without_content_is_no_last_word() -> None:
    assert not event_facts({"actions": {"end_of_agent": True}}).final


@pytest.mark.parametrize(
    ("state", "nodes"),
    [
        (None, None),
        ({"current_sub_agent": "reader"}, ()),
        ({"nodes": {"a": {"status": 3}, "b": {"status": 2, "interrupts": []}}}, (2, 3)),
        ({"nodes": "a custom agent's own word"}, ()),
    ],
)
def test_agent_states(state: dict[str, Any] | None, nodes: tuple[int, ...] | None) -> None:
    actions = {} if state is None else {"agent_state": state}
    assert event_facts({"actions": actions}).nodes == nodes


def test_error_with_content_is_a_reply_that_was_cut_short() -> None:
    assert event_facts({"error_code": "SAFETY"}).failed
    assert not event_facts({"error_code": "MAX_TOKENS", "content": {"parts": [{"text": "It"}]}}).failed


def test_error_with_an_empty_content_is_an_error_and_nothing_else() -> None:
    empty = event_facts(
        {"error_code": "MODEL_RETURNED_NO_CONTENT", "content": {"role": "model", "parts": []}}
    )
    assert empty.failed
    assert not empty.final


def test_root_of_a_later_kind_is_as_good_as_a_custom_agent() -> None:
    assert Root.from_record({"name": "docs", "kind": "llm"}) == Root(name="docs", kind=RootKind.LLM)
    assert Root.from_record({"name": "docs", "kind": "swarm"}).kind is RootKind.CUSTOM


def test_row_of_a_later_release_has_no_known_kind_or_state() -> None:
    row = {
        "key": "1",
        "id": "1",
        "tool": "file_issue",
        "kind": "Idempotent",
        "state": "begun",
        "epoch": 1,
        "confirmed": False,
        "cleared": False,
        "doubt": None,
        "asked_confirmed": False,
    }
    known = CallFacts.from_row(row)
    assert (known.kind, known.state, known.doubt) == (ToolKind.IDEMPOTENT, CallState.BEGUN, None)
    later = CallFacts.from_row({**row, "kind": "Compensated", "state": "undone", "doubt": "guessed"})
    assert (later.kind, later.state, later.doubt) == (None, None, Doubt.UNKNOWN)
