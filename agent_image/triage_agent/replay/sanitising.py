"""Making values storable: JSON that Postgres takes.

ADK appends an event only if its JSON can be stored, and a tool whose result cannot be would run again at every resume.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.adk.events.event import Event
from google.genai import types
from pydantic_core import to_jsonable_python

from triage_contract.texts import storable_text

_MAX_DEPTH: Final = 64
"""Deeper values are cut: the JSON of an event has no use for them."""

_MAX_INTEGER_BITS: Final = 8192
"""Longer integers are described: Python prints none of more than 4300 digits."""


def storable(value: Any) -> Any:
    """Turn any value into JSON values that a ``jsonb`` column holds.

    NUL and lone surrogates become U+FFFD, NaN and infinities strings, keys strings, bytes base64, models and
    dataclasses objects; what is no data at all, too deep or within itself, its class name in angle brackets.
    """
    return _storable(value, ())


def sanitise_event(event: Event) -> dict[str, Any]:
    """Make an event storable, in place: the in-memory session then holds what the database does. Gives its JSON."""
    try:
        dumped = event.model_dump(mode="json", exclude_none=True)
    except (ValueError, RecursionError):
        dumped = None  # an object that is no data somewhere in it
    clean = storable(event.model_dump(exclude_none=True) if dumped is None else dumped)
    if clean != dumped:
        rebuilt = Event.model_validate_json(json.dumps(clean))
        for name in Event.model_fields:
            setattr(event, name, getattr(rebuilt, name))
    stored: dict[str, Any] = clean
    return stored


def sanitise_part(part: types.Part) -> None:
    """Make what an agent reads of a part of a model's reply storable, in place."""
    if part.text is not None:
        part.text = storable(part.text)
    if part.function_call is not None and part.function_call.args is not None:
        part.function_call.args = storable(part.function_call.args)


def _storable(value: Any, within: tuple[int, ...]) -> Any:
    match value:
        case None | bool():
            return value
        case int():
            return value if value.bit_length() <= _MAX_INTEGER_BITS else _described(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return storable_text(value)
    if len(within) >= _MAX_DEPTH or id(value) in within:
        return _described(value)
    within = (*within, id(value))
    match value:
        case Mapping():
            return {_key(key): _storable(item, within) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_storable(item, within) for item in value]
        case _:
            return _storable(_plain(value), within)


def _key(key: Any) -> str:
    return storable_text(key if isinstance(key, str) else _converted(str, key))


def _plain(value: Any) -> Any:
    """Turn one object into plain data, as pydantic would; its insides may still need scrubbing."""
    return _converted(lambda it: to_jsonable_python(it, bytes_mode="base64", fallback=_described), value)


def _converted(convert: Callable[[Any], Any], value: Any) -> Any:
    try:
        return convert(value)
    # Code of the object's own runs here, and can raise anything.
    except Exception:  # noqa: BLE001
        return _described(value)


def _described(value: Any) -> str:
    return f"<{type(value).__name__}>"
