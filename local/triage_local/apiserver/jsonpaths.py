"""The part of kubectl's JSONPath that printer columns use: fields, places, slices, wildcards, filters."""

import json
import re
from typing import Any, Final

_STEP: Final = re.compile(
    r"""\.(?P<field>(?:[\w-]|\\.)+)
      | \[(?P<index>-?\d+)\]
      | \[(?P<start>-?\d*):(?P<end>-?\d*)\]
      | (?P<every>\[\*\]|\.\*)
      | \[['"](?P<quoted>[^'"]+)['"]\]
      | \[\?\(@(?P<inner>(?:\.[\w-]+)+)\s*(?P<op>==|!=)\s*(?P<literal>"[^"]*"|'[^']*'|[\w.-]+)\)\]""",
    re.VERBOSE,
)


class JsonPathError(ValueError):
    """The text is no path, or has a part that is not supported here."""


def found(path: str, value: Any) -> list[Any]:
    """The values at a path such as ``.status.conditions[?(@.type=="Ready")].status``; none: an empty list.

    Raises JsonPathError.
    """
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    values = [value]
    place = 0
    while place < len(text):
        match = _STEP.match(text, place)
        if match is None:
            raise JsonPathError(f"unsupported at {place}: {path}")
        values = [item for each in values for item in _stepped(match, each)]
        place = match.end()
    return values


def _stepped(match: re.Match[str], value: Any) -> list[Any]:
    field = match["field"] or match["quoted"]
    if field is not None:
        name = re.sub(r"\\(.)", r"\1", field)
        return [value[name]] if isinstance(value, dict) and name in value else []
    if match["every"]:
        return (
            list(value.values())
            if isinstance(value, dict)
            else list(value)
            if isinstance(value, list)
            else []
        )
    if not isinstance(value, list):
        return []
    if match["index"] is not None:
        return value[int(match["index"]) :][:1] if int(match["index"]) != -1 else value[-1:]
    if match["inner"]:
        literal = match["literal"].strip("\"'")
        equal = match["op"] == "=="
        return [item for item in value if (literal in map(_text, found(match["inner"], item))) is equal]
    return value[int(match["start"] or 0) : int(match["end"]) if match["end"] else None]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def printed(value: Any) -> str:
    """A value as a string column shows it."""
    return _text(value)
