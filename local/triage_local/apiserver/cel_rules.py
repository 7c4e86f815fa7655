"""CEL rules of a schema (``x-kubernetes-validations``): compiled once, evaluated on each write."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import celpy
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from triage_local.apiserver import field_errors
from triage_local.apiserver.field_errors import FieldError
from triage_local.apiserver.objects import Json
from triage_local.apiserver.schemas import kind_of

_ENVIRONMENT: Final = celpy.Environment()
_OLD_SELF: Final = re.compile(r"\boldSelf\b")
_ABSENT: Final = object()


class RuleSyntaxError(ValueError):
    """The text is no CEL expression. ``path`` is the field of the schema that holds it."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"compilation failed: {detail}")
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of one schema node."""

    named: str
    """What an error calls the rule: its message, else its text."""
    message: str
    reason: str
    field_path: str
    program: celpy.Runner
    message_program: celpy.Runner | None
    transition: bool
    """The rule speaks of the old value, so it holds where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTree:
    """The rules of a schema node and of those below it; nodes without rules are left out."""

    rules: tuple[Rule, ...]
    properties: dict[str, "RuleTree"]
    additional: "RuleTree | None"
    items: "RuleTree | None"
    map_keys: tuple[str, ...]
    """Keys by which list items old and new belong together; empty: they do not."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to check here and below."""
        return not (self.rules or self.properties or self.additional or self.items)


def compiled(schema: Json, path: str = "") -> RuleTree:
    """The rules of a structural schema at this path. Raises RuleSyntaxError for the first that does not compile."""
    properties = {
        key: compiled(inner, f"{path}.properties[{key}]")
        for key, inner in (schema.get("properties") or {}).items()
    }
    additional, items = schema.get("additionalProperties"), schema.get("items")
    rules = enumerate(schema.get("x-kubernetes-validations") or [])
    return RuleTree(
        rules=tuple(_rule(entry, f"{path}.x-kubernetes-validations[{place}]") for place, entry in rules),
        properties={key: tree for key, tree in properties.items() if not tree.empty},
        additional=_compiled_inner(additional, f"{path}.additionalProperties"),
        items=_compiled_inner(items, f"{path}.items"),
        map_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
    )


def _compiled_inner(schema: Any, path: str) -> RuleTree | None:
    tree = compiled(schema, path) if isinstance(schema, dict) else None
    return None if tree is None or tree.empty else tree


def _rule(entry: Json, path: str) -> Rule:
    text = str(entry["rule"]).strip()
    named = str(entry.get("message") or text).strip()
    message_text = entry.get("messageExpression")
    return Rule(
        named=named,
        message=named if entry.get("message") else f"failed rule: {named}",
        reason=str(entry.get("reason") or "FieldValueInvalid"),
        field_path=str(entry.get("fieldPath") or ""),
        program=_program(text, f"{path}.rule"),
        message_program=_program(str(message_text), f"{path}.messageExpression") if message_text else None,
        transition=_OLD_SELF.search(text) is not None,
    )


def _program(text: str, path: str) -> celpy.Runner:
    try:
        return _ENVIRONMENT.program(_ENVIRONMENT.compile(text))
    except CELParseError as error:
        raise RuleSyntaxError(path, str(error.args[0] if error.args else error)) from error


def broken(tree: RuleTree, value: Any, old: Any = _ABSENT, path: str = "") -> Iterator[FieldError]:
    """The rules that the value breaks, from the root down. Without ``old`` transition rules hold."""
    for rule in tree.rules:
        if not (rule.transition and old is _ABSENT):
            error = _checked(rule, value, old, path)
            if error is not None:
                yield error
    if isinstance(value, dict):
        old_fields = old if isinstance(old, dict) else {}
        for key, item in value.items():
            inner = tree.properties.get(key, tree.additional)
            if inner is not None and item is not None:
                before = old_fields.get(key)
                yield from broken(
                    inner, item, _ABSENT if before is None else before, f"{path}.{key}" if path else key
                )
    elif isinstance(value, list) and tree.items is not None:
        for place, item in enumerate(value):
            yield from broken(tree.items, item, _partner(item, old, tree.map_keys), f"{path}[{place}]")


def _partner(item: Any, old: Any, keys: tuple[str, ...]) -> Any:
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return _ABSENT
    same = [other for other in old if all(other.get(key) == item.get(key) for key in keys)]
    return same[0] if same else _ABSENT


def _checked(rule: Rule, value: Any, old: Any, path: str) -> FieldError | None:
    activation = {"self": json_to_cel(value)}
    if old is not _ABSENT:
        activation["oldSelf"] = json_to_cel(old)
    try:
        if rule.program.evaluate(activation):
            return None
        message = str(rule.message_program.evaluate(activation)) if rule.message_program else rule.message
    except CELEvalError as error:
        words = str(error.args[0]) if error.args else "evaluation failed"
        words = re.sub(r"no such member in mapping: '(.*)'", r"no such key: \1", words)
        return _error("FieldValueInvalid", path, value, f"{words} evaluating rule: {rule.named}")
    return _error(rule.reason, path + rule.field_path, value, message)


def _error(reason: str, path: str, value: Any, message: str) -> FieldError:
    match reason:
        case "FieldValueRequired":
            return field_errors.required(path, message)
        case "FieldValueForbidden":
            return field_errors.forbidden(path, message)
        case "FieldValueDuplicate":
            return FieldError(path=path, reason=reason, message=f'Duplicate value: "{kind_of(value)}"')
        case _:
            return FieldError(
                path=path, reason=reason, message=f'Invalid value: "{kind_of(value)}": {message}'
            )
