"""Making values storable: JSON that Postgres takes.

ADK appends an event only if its JSON can be stored, and a tool whose result cannot be would run again at every resume.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from google.adk.events.event import Event
from google.genai import types
from pydantic_core import to_jsonable_python

_MAX_DEPTH: Final = 64
"""Deeper values, cyclic ones among them, are cut: the JSON of an event has no use for them."""

# jsonb refuses NUL (PostgreSQL documentation, 8.14), UTF-8 lone surrogates.
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


def storable(value: Any) -> Any:
    """Turn any value into JSON values that a ``jsonb`` column holds.

    NUL and lone surrogates become U+FFFD, NaN and infinities strings, keys strings, bytes base64, models and
    dataclasses objects, and what is no data at all its class name in angle brackets.
    """
    return _storable(value, 0)


def sanitise_event(event: Event) -> None:
    """Make an event storable, in place: the in-memory session then holds what the database does."""
    for part in (event.content.parts or []) if event.content else []:
        sanitise_part(part)
    if event.actions.state_delta:
        event.actions.state_delta = storable(event.actions.state_delta)
    if event.error_message:
        event.error_message = storable(event.error_message)


def sanitise_part(part: types.Part) -> None:
    """Make a part of a content storable, in place."""
    if part.text is not None:
        part.text = storable(part.text)
    if part.function_call is not None and part.function_call.args is not None:
        part.function_call.args = storable(part.function_call.args)
    if part.function_response is not None and part.function_response.response is not None:
        part.function_response.response = storable(part.function_response.response)


def _storable(value: Any, depth: int) -> Any:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
        case _ if depth >= _MAX_DEPTH:
            return _described(value)
        case Mapping():
            return {_key(key): _storable(item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_storable(item, depth + 1) for item in value]
        case _:
            return _storable(_plain(value), depth + 1)


def _key(key: Any) -> str:
    return str(_storable(key if isinstance(key, str) else str(key), 0))


def _plain(value: Any) -> Any:
    """Turn one object into plain data, as pydantic would; its insides may still need scrubbing."""
    try:
        return to_jsonable_python(value, bytes_mode="base64", fallback=_described)
    except (ValueError, RecursionError):
        return _described(value)


def _described(value: Any) -> str:
    return f"<{type(value).__name__}>"
