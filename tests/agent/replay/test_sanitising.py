"""Whatever a tool returns or a model says can be stored, and is found again as it was stored."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from support.databases import Database
from triage_agent.replay.sanitising import sanitise_event, storable

BAD = "\N{REPLACEMENT CHARACTER}"


class Model(pydantic.BaseModel):
    """A model with text that cannot be stored."""

    text: str = "a\0"


class Broken(pydantic.BaseModel):
    """A model that raises when somebody wants to see it."""

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        raise KeyError("total")


@dataclass
class Record:
    """A dataclass with text that cannot be stored, and an object."""

    text: str = "\ud800"
    other: object = None


class Unnamed:
    """A key that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no name")


def broken_iterator() -> Iterator[int]:
    yield 1
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (None, None),
        (True, True),
        ("a\0b", f"a{BAD}b"),
        ("lone \udcff", f"lone {BAD}"),
        ("pair \N{GRINNING FACE}", "pair \N{GRINNING FACE}"),
        (float("nan"), "nan"),
        (-math.inf, "-inf"),
        (2**8192, "<int>"),
        (b"\xff\0", "_wA="),
        ({1: "a", "b\0": None}, {"1": "a", f"b{BAD}": None}),
        ({Unnamed(): 1}, {"<Unnamed>": 1}),
        (("a", {2}), ["a", [2]]),
        (Model(), {"text": f"a{BAD}"}),
        (Broken(), "<Broken>"),
        (Record(), {"text": BAD, "other": None}),
        (Record(other=object()), {"text": BAD, "other": "<object>"}),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (Decimal("1.5"), "1.5"),
        (object(), "<object>"),
        (ValueError("no"), "<ValueError>"),
        (iter([1, 2]), [1, 2]),
        (broken_iterator(), "<generator>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_becomes_one_that_can_be_stored(value: Any, stored: Any) -> None:
    assert storable(value) == stored


def test_a_value_within_itself_is_cut_there() -> None:
    cycle: list[Any] = [1]
    cycle += [cycle, {"again": cycle}]
    assert storable(cycle) == [1, "<list>", {"again": "<list>"}]


def test_a_value_that_comes_twice_is_stored_twice() -> None:
    shared = ["a"]
    assert storable([shared, shared]) == [["a"], ["a"]]


def test_a_deep_value_is_cut() -> None:
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    assert storable(deep) != deep
    assert "<list>" in json.dumps(storable(deep))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.builds(object),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(codec=None)) | st.integers(), inner)
    ),
    max_leaves=20,
)


@given(anything)
def test_everything_becomes_json_in_utf_8_without_nul(value: Any) -> None:
    line = json.dumps(storable(value), allow_nan=False, ensure_ascii=False)
    assert "\\u0000" not in line
    line.encode()


@given(anything)
def test_what_can_be_stored_stays_as_it_is(value: Any) -> None:
    once = storable(value)
    assert storable(once) == once


async def test_postgres_takes_what_was_made_storable(database: Database) -> None:
    async with database.engine.begin() as connection:
        value = storable(
            {"all": "".join(map(chr, range(0x300))) + "\ud800\udc00", "many": [2**8000, 1.5, -(2**63)]}
        )
        statement = text("SELECT CAST(:value AS jsonb)")
        found = (await connection.execute(statement, {"value": json.dumps(value)})).scalar_one()
    assert found == value


def an_event(**fields: Any) -> Event:
    return Event(author="docs", invocation_id="inv", **fields)


def content(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=list(parts))


@pytest.mark.parametrize(
    "event",
    [
        an_event(content=content(types.Part(text="a\0"))),
        an_event(content=content(types.Part(executable_code=types.ExecutableCode(code="\udcff")))),
        an_event(
            content=content(types.Part(function_call=types.FunctionCall(name="\0", args={"a": object()})))
        ),
        an_event(output={"a": object(), "b": float("nan")}),
        an_event(actions=EventActions(state_delta={"a\0": {1, 2}})),
        an_event(error_code="X", error_message="\0"),
    ],
    ids=["text", "code", "call", "output", "state", "error"],
)
def test_an_event_becomes_storable_in_place(event: Event) -> None:
    name, timestamp = event.id, event.timestamp
    sanitise_event(event)
    line = json.dumps(event.model_dump(mode="json", exclude_none=True), allow_nan=False, ensure_ascii=False)
    line.encode()
    assert "\\u0000" not in line
    assert (event.id, event.timestamp, event.author) == (name, timestamp, "docs")


def test_bytes_in_an_event_survive_what_is_done_about_its_text() -> None:
    blob = types.Blob(data=b"\xff\xfe\0", mime_type="image/png")
    event = an_event(
        content=content(types.Part(text="\0"), types.Part(inline_data=blob, thought_signature=b"\xfb"))
    )
    sanitise_event(event)
    assert event.content is not None
    assert event.content.parts is not None
    assert event.content.parts[1].inline_data == blob
    assert event.content.parts[1].thought_signature == b"\xfb"


def test_an_event_that_can_be_stored_is_left_alone() -> None:
    event = an_event(content=content(types.Part(text="fine")))
    before = event.content
    sanitise_event(event)
    assert event.content is before
