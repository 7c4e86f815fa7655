"""What an API server does with an object before it stores it: fill in defaults, check schema and CEL rules.

Only as much as the schemas of this project use; the words of the messages are jsonschema's.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from jsonschema import Draft4Validator
from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]

RULES = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One reason for a refusal: the field's path, the schema's keyword, and the message."""

    field: str
    keyword: str
    message: str


def with_defaults(schema: Schema, value: Any) -> Any:
    """Return a copy of a value in which what is absent has its default, also inside of defaults."""
    filled = deepcopy(value)
    if isinstance(filled, dict):
        for name, field in schema.get("properties", {}).items():
            if name not in filled and "default" in field:
                filled[name] = deepcopy(field["default"])
            if name in filled:
                filled[name] = with_defaults(field, filled[name])
    return filled


def faults(schema: Schema, value: dict[str, Any], old: dict[str, Any] | None = None) -> list[Fault]:
    """Return why an object, with its defaults, is refused; ``old`` is the stored one that it replaces."""
    found = [_fault(error) for error in Draft4Validator(schema).iter_errors(value)]
    # As in an API server, rules may count on the schema.
    return found or list(_broken_rules(schema, value, old, ""))


def _fault(error: ValidationError) -> Fault:
    path = [str(step) for step in error.absolute_path]
    if error.validator == "required":
        path.append(re.findall("'(.+)' is a required property", error.message)[0])
    return Fault(field=".".join(path), keyword=str(error.validator), message=error.message)


def _broken_rules(schema: Schema, value: Any, old: Any, path: str) -> Iterator[Fault]:
    for rule in schema.get(RULES, ()):
        if old is None and "oldSelf" in rule["rule"]:
            continue
        if not evaluate(rule["rule"], value, old):
            yield Fault(field=path, keyword=RULES, message=rule["message"])
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, field in schema.get("properties", {}).items():
            if name in value:
                inner = f"{path}.{name}".lstrip(".")
                yield from _broken_rules(field, value[name], before.get(name), inner)


def evaluate(rule: str, value: Any, old: Any = None) -> bool:
    """Return whether a CEL rule holds."""
    environment = celpy.Environment()
    program = environment.program(environment.compile(rule))
    return bool(program.evaluate({"self": json_to_cel(value), "oldSelf": json_to_cel(old)}))
