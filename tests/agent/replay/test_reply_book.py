"""Which reply answers which question, after which losses."""

import pytest
from google.genai import types

from triage_agent.replay.journal import StoredReply
from triage_agent.replay.replies import (
    Digester,
    Question,
    ReplyBook,
    Slot,
    call_id,
    is_our_call_id,
)


def question(**fields: str) -> Question:
    defaults = {"agent": "docs", "branch": "", "node_path": "docs@1", "within": "", "contents_digest": "0"}
    return Question(**{**defaults, **fields})


def kept(slots: list[Slot]) -> list[StoredReply]:
    """What is in the journal after these slots were filled."""
    return [StoredReply(key=slot.key, reply={"said": slot.key}) for slot in slots]


def said(slots: list[Slot]) -> list[str | None]:
    return [None if slot.reply is None else slot.reply["said"] for slot in slots]


def test_a_new_question_has_to_be_asked() -> None:
    assert ReplyBook("inv", (), ()).ask(question()).reply is None


def test_a_question_whose_event_was_lost_is_answered_once() -> None:
    first = ReplyBook("inv", (), ()).ask(question())
    book = ReplyBook("inv", kept([first]), ())
    assert said([book.ask(question()), book.ask(question())]) == [first.key, None]


def test_a_loop_does_not_hear_the_answer_that_it_acted_on() -> None:
    book = ReplyBook("inv", (), ())
    rounds = [book.ask(question()) for _ in range(3)]
    assert len({slot.key for slot in rounds}) == 3
    # Two rounds are stored as events, the third reply was lost.
    book = ReplyBook("inv", kept(rounds), [slot.key for slot in rounds[:2]])
    assert said([book.ask(question()), book.ask(question())]) == [rounds[2].key, None]


@pytest.mark.parametrize(
    "asker", [question(node_path="flow@1/node@1"), question(within="call-1")], ids=["node", "tool"]
)
def test_who_starts_over_hears_everything_again_in_its_order(asker: Question) -> None:
    book = ReplyBook("inv", (), ())
    slots = [book.ask(asker) for _ in range(2)]
    book = ReplyBook("inv", kept(slots), [slots[0].key])
    assert said([book.ask(asker) for _ in range(3)]) == [slots[0].key, slots[1].key, None]


def test_a_reply_that_came_at_the_second_try_is_found() -> None:
    book = ReplyBook("inv", (), ())
    book.ask(question())  # the model failed
    second = book.ask(question())
    book = ReplyBook("inv", kept([second]), ())
    assert said([book.ask(question())]) == [second.key]


def test_questions_at_the_same_time_have_keys_of_their_own() -> None:
    book = ReplyBook("inv", (), ())
    assert book.ask(question()).key != book.ask(question()).key


@pytest.mark.parametrize(
    ("field", "value"),
    [("agent", "other"), ("branch", "b"), ("within", "call-1"), ("contents_digest", "1")],
)
def test_another_question_has_another_answer(field: str, value: str) -> None:
    first = ReplyBook("inv", (), ()).ask(question())
    assert ReplyBook("inv", kept([first]), ()).ask(question(**{field: value})).reply is None
    assert ReplyBook("other", kept([first]), ()).ask(question()).reply is None


def test_an_agent_that_goes_on_is_known_under_any_path() -> None:
    first = ReplyBook("inv", (), ()).ask(question(node_path="docs@1"))
    assert said([ReplyBook("inv", kept([first]), ()).ask(question(node_path="docs@2"))]) == [first.key]


def test_a_second_round_of_a_node_is_another_question() -> None:
    first = ReplyBook("inv", (), ()).ask(question(node_path="flow@1/node@1"))
    assert ReplyBook("inv", kept([first]), ()).ask(question(node_path="flow@1/node@2")).reply is None


def contents_digest(contents: list[types.Content]) -> str:
    return Digester().digest(contents)


def with_call(name: str | None, text: str = "hi") -> list[types.Content]:
    call = types.FunctionCall(id=name, name="read_page", args={"id": "kept"})
    result = types.FunctionResponse(id=name, name="read_page", response={"id": text})
    return [
        types.Content(role="model", parts=[types.Part(function_call=call)]),
        types.Content(role="user", parts=[types.Part(function_response=result)]),
    ]


def test_call_ids_do_not_matter_to_what_is_asked_but_everything_else_does() -> None:
    assert (
        contents_digest(with_call("a")) == contents_digest(with_call("b")) == contents_digest(with_call(None))
    )
    assert contents_digest(with_call("a")) != contents_digest(with_call("a", "ho"))


@pytest.mark.parametrize(("told", "stored"), [(1e16, 10**16), (-1e300, -(10**300)), (-0.0, 0.0), (1.0, 1.0)])
def test_numbers_that_postgres_writes_otherwise_are_the_same(told: float, stored: float) -> None:
    def result(value: float) -> list[types.Content]:
        response = types.FunctionResponse(name="count", response={"result": [value]})
        return [types.Content(role="user", parts=[types.Part(function_response=response)])]

    assert contents_digest(result(told)) == contents_digest(result(stored))


def test_a_request_is_digested_alike_whatever_was_digested_before() -> None:
    digester, contents = Digester(), [*with_call("a"), *with_call("b", "ho"), *with_call("c", "\ud800")]
    for length in (1, 3, 6, 2, 6):
        assert digester.digest(contents[:length]) == contents_digest(contents[:length])


def test_replies_that_an_older_release_kept_are_found() -> None:
    assert contents_digest(with_call("a")) == "a29ec55d3927f4ff56f47accd471b963"


def test_a_call_id_is_that_of_its_reply_and_place() -> None:
    ids = [
        call_id("k-0", 0, brought=False),
        call_id("k-0", 1, brought=False),
        call_id("k-1", 0, brought=False),
    ]
    assert len(set(ids)) == 3
    assert ids[0] == call_id("k-0", 0, brought=False)
    assert ids[0].startswith("adk-")
    assert call_id("k-0", 0, brought=True).startswith("call-")
    assert all(map(is_our_call_id, [*ids, call_id("k-0", 0, brought=True)]))


@pytest.mark.parametrize("name", ["call_0", "adk-41b2c8aa-9d1b-4b1e-9d8f-5b5d2f7c3c11", "toolu_01A", ""])
def test_ids_of_others_are_known_as_such(name: str) -> None:
    assert not is_our_call_id(name)
