"""Label and field selectors: parsing, and whether an object is selected."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from triage_local.apiserver.exceptions import BadRequestError
from triage_local.apiserver.objects import Json, metadata

Predicate: TypeAlias = Callable[[Json], bool]

COMMON_FIELDS: Final = ("metadata.name", "metadata.namespace")
"""Fields that every resource can be selected by."""

_LABEL_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!\s*(?P<absent_key>[\w./-]+))
      | (?P<key>[\w./-]+)\s*(?:
            (?P<op>==|=|!=)\s*(?P<value>[\w.-]*)
          | \s(?P<set_op>in|notin)\s*\((?P<values>[^()]*)\)
          | (?P<exists>)
        )
    )\s*(?:,|$)""",
    re.VERBOSE,
)
_FIELD_TERM = re.compile(r"\s*(?P<path>[^=!,]+?)\s*(?P<op>==|=|!=)\s*(?P<value>(?:\\.|[^\\,=])*)\s*(?:,|$)")


def everything(_: Json) -> bool:
    """The empty selector."""
    return True


def all_of(*predicates: Predicate) -> Predicate:
    """A selector that holds where all the given ones hold."""
    chosen = [predicate for predicate in predicates if predicate is not everything]
    return (lambda obj: all(predicate(obj) for predicate in chosen)) if chosen else everything


def label_selector(text: str) -> Predicate:
    """The predicate of a selector such as ``app=x,tier in (a, b),!canary``. Raises BadRequestError."""
    if not text.strip():
        return everything
    terms: list[Predicate] = []
    place = 0
    while place < len(text):
        match = _LABEL_TERM.match(text, place)
        if match is None:
            raise BadRequestError(f"unable to parse requirement: {text!r} at {place}")
        terms.append(_label_term(match))
        place = match.end()
    return all_of(*terms)


def _label_term(match: re.Match[str]) -> Predicate:
    if match["absent"]:
        return _on_label(match["absent_key"], lambda value: value is None)
    key: str = match["key"]
    if match["op"] in ("=", "=="):
        wanted = match["value"]
        return _on_label(key, lambda value: value == wanted)
    if match["op"] == "!=":
        unwanted = match["value"]
        return _on_label(key, lambda value: value != unwanted)
    if match["set_op"]:
        values = {value.strip() for value in match["values"].split(",")}
        inside = match["set_op"] == "in"
        # `notin` also selects objects without the label.
        return _on_label(key, lambda value: (value in values) is inside)
    return _on_label(key, lambda value: value is not None)


def _on_label(key: str, holds: Callable[[str | None], bool]) -> Predicate:
    return lambda obj: holds((metadata(obj).get("labels") or {}).get(key))


def field_selector(text: str, *, fields: Mapping[str, str]) -> Predicate:
    """The predicate of a selector such as ``status.phase!=Running``.

    ``fields`` are the selectable fields and what each is taken for where the object lacks it. Raises
    BadRequestError for another field or for text that is no selector.
    """
    terms: list[Predicate] = []
    place = 0
    while place < len(text.rstrip()):
        match = _FIELD_TERM.match(text, place)
        if match is None:
            raise BadRequestError(f"invalid field selector: {text!r} at {place}")
        path = match["path"]
        if path not in COMMON_FIELDS and path not in fields:
            raise BadRequestError(f"field label not supported: {path}")
        wanted = re.sub(r"\\(.)", r"\1", match["value"])
        terms.append(_field_term(path, wanted, match["op"] != "!=", fields.get(path, "")))
        place = match.end()
    return all_of(*terms)


def _field_term(path: str, wanted: str, equal: bool, absent: str) -> Predicate:
    steps = path.split(".")
    return lambda obj: (_text(obj, steps, absent) == wanted) is equal


def _text(obj: Json, steps: list[str], absent: str) -> str:
    value: Any = obj
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return absent if value is None else str(value)
