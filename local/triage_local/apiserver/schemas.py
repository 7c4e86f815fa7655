"""Structural schemas of custom resources: pruning, defaults, and the wording of what does not fit."""

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from jsonschema import Draft4Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from triage_local.apiserver import field_errors
from triage_local.apiserver.field_errors import FieldError
from triage_local.apiserver.objects import Json, parsed_time

_TEXT_RULES: Final = ("maxLength", "minLength", "pattern")
_TYPE_META: Final = ("apiVersion", "kind", "metadata")

_FORMATS = FormatChecker(formats=())


@_FORMATS.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    if isinstance(value, str):
        parsed_time(value)
        return "T" in value
    return True


@_FORMATS.checks("int32")
def _is_int32(value: object) -> bool:
    return not isinstance(value, int) or -(2**31) <= value < 2**31


@_FORMATS.checks("int64")
def _is_int64(value: object) -> bool:
    return not isinstance(value, int) or -(2**63) <= value < 2**63


@_FORMATS.checks("uuid")
def _is_uuid(value: object) -> bool:
    pattern = r"(?i)[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}"
    return not isinstance(value, str) or re.fullmatch(pattern, value) is not None


def pruned(schema: Json, value: Any, *, path: str = "", root: bool = True) -> tuple[Any, list[str]]:
    """The value without what its schema does not know, and the paths of what was left out."""
    unknown: list[str] = []
    return _pruned(schema, value, path, root, unknown), unknown


def _pruned(schema: Json, value: Any, path: str, embedded: bool, unknown: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_pruned(items, item, f"{path}[{n}]", _embeds(items), unknown) for n, item in enumerate(value)]
    if not isinstance(value, dict) or (
        schema.get("x-kubernetes-preserve-unknown-fields") and not schema.get("properties")
    ):
        return value
    kept = {}
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, item in value.items():
        place = f"{path}.{key}" if path else key
        if embedded and key in _TYPE_META:
            kept[key] = item
        elif key in properties:
            kept[key] = _pruned(properties[key], item, place, _embeds(properties[key]), unknown)
        elif isinstance(additional, dict):
            kept[key] = _pruned(additional, item, place, _embeds(additional), unknown)
        elif additional is True or schema.get("x-kubernetes-preserve-unknown-fields"):
            kept[key] = item
        else:
            unknown.append(place)
    return kept


def _embeds(schema: Json) -> bool:
    return bool(schema.get("x-kubernetes-embedded-resource"))


def defaulted(schema: Json, value: Any) -> Any:
    """The value with the defaults of absent fields, and without nulls where null is no value."""
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [defaulted(items, item) for item in value]
    if not isinstance(value, dict):
        return value
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    filled = {}
    for key, item in value.items():
        inner = properties.get(key, additional if isinstance(additional, dict) else None)
        if item is not None or inner is None or inner.get("nullable"):
            filled[key] = item if inner is None else defaulted(inner, item)
    for key, inner in properties.items():
        if key not in filled and "default" in inner:
            filled[key] = defaulted(inner, copy.deepcopy(inner["default"]))
    return filled


def json_schema(schema: Json) -> Json:
    """The draft 4 schema that means the same: ``nullable`` and int-or-string become types."""
    converted: Json = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    for field in ("default", "description", "nullable", "example", "title"):
        converted.pop(field, None)
    if schema.get("x-kubernetes-int-or-string"):
        converted["type"] = ["integer", "string"]
    if schema.get("nullable") and "type" in converted:
        kinds = converted["type"]
        converted["type"] = [*(kinds if isinstance(kinds, list) else [kinds]), "null"]
        if "enum" in converted:
            converted["enum"] = [*converted["enum"], None]
    if "properties" in schema:
        converted["properties"] = {key: json_schema(item) for key, item in schema["properties"].items()}
    for field in ("items", "additionalProperties", "not"):
        if isinstance(schema.get(field), dict):
            converted[field] = json_schema(schema[field])
    for field in ("allOf", "anyOf", "oneOf"):
        if field in schema:
            converted[field] = [json_schema(item) for item in schema[field]]
    return converted


def validator(schema: Json) -> Draft4Validator:
    """A validator for values of a structural schema; jsonschema's SchemaError if it is no schema."""
    converted = json_schema(schema)
    Draft4Validator.check_schema(converted)
    return Draft4Validator(converted, format_checker=_FORMATS)


def errors_of(checker: Draft4Validator, value: Any) -> list[FieldError]:
    """What does not fit the schema, in the words of a real API server."""
    found: list[FieldError] = []
    text_errors: set[str] = set()
    for error in sorted(checker.iter_errors(value), key=_rank):
        path = dotted(list(error.absolute_path))
        if error.validator in _TEXT_RULES:
            # Of the rules for a text a server names the first that is broken.
            if path in text_errors:
                continue
            text_errors.add(path)
        found.append(_worded(error, path))
    return found


def _rank(error: ValidationError) -> int:
    """The order in which a server names broken rules: alternatives last, those of a text as in ``_TEXT_RULES``."""
    if error.validator in ("anyOf", "oneOf", "allOf", "not"):
        return len(_TEXT_RULES)
    return _TEXT_RULES.index(error.validator) if error.validator in _TEXT_RULES else -1


def duplicates_of(schema: Json, value: Any, path: str = "") -> Iterator[FieldError]:
    """The entries that a list of the type ``set`` or ``map`` has twice."""
    if isinstance(value, dict):
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            inner = properties.get(key, additional)
            if isinstance(inner, dict):
                yield from duplicates_of(inner, item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        keys, kind = schema.get("x-kubernetes-list-map-keys") or (), schema.get("x-kubernetes-list-type")
        seen: list[Any] = []
        for place, item in enumerate(value):
            mark = {key: item.get(key) for key in keys} if kind == "map" and isinstance(item, dict) else item
            if kind in ("map", "set") and mark in seen:
                yield field_errors.duplicate(f"{path}[{place}]", mark)
            seen.append(mark)
            yield from duplicates_of(schema.get("items") or {}, item, f"{path}[{place}]")


def dotted(steps: Sequence[str | int]) -> str:
    """A path such as ``spec.tools[0].name``."""
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def kind_of(value: Any) -> str:
    """The name of a JSON value's type."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


_WORDING: Final[dict[str, Callable[[Any], str]]] = {
    "minLength": lambda limit: f"should be at least {limit} chars long",
    "minItems": lambda limit: f"should have at least {limit} items",
    "minProperties": lambda limit: f"should have at least {limit} properties",
    "pattern": lambda pattern: f"should match '{pattern}'",
    "multipleOf": lambda factor: f"should be a multiple of {factor}",
    "uniqueItems": lambda _: "shouldn't contain duplicates",
    "anyOf": lambda _: "must validate at least one schema (anyOf)",
    "oneOf": lambda _: "must validate one and only one schema (oneOf)",
    "allOf": lambda _: "must validate all the schemas (allOf)",
    "not": lambda _: "must not validate the schema (not)",
}


def _worded(error: ValidationError, path: str) -> FieldError:
    rule = error.validator
    value: Any = error.instance
    limit: Any = error.validator_value
    schema: Any = error.schema
    match rule:
        case "required":
            missing = re.match(r"'(.*)' is a required property$", error.message)
            assert missing is not None
            return field_errors.required(f"{path}.{missing[1]}" if path else missing[1])
        case "type":
            wanted = [kind for kind in (limit if isinstance(limit, list) else [limit]) if kind != "null"]
            found = kind_of(value)
            detail = f'{path} in body must be of type {",".join(wanted)}: "{found}"'
            return field_errors.wrong_type(path, found, detail)
        case "enum":
            return field_errors.unsupported(path, value, [item for item in limit if item is not None])
        case "maxLength":
            return field_errors.too_long(path, limit)
        case "maxItems" | "maxProperties":
            return field_errors.too_many(path, len(value), limit)
        case "minimum" | "maximum":
            side = "greater" if rule == "minimum" else "less"
            exclusive = schema.get(f"exclusive{str(rule).capitalize()}")
            bound = f"should be {side} than {'' if exclusive else 'or equal to '}{limit}"
            return field_errors.invalid_value(path, value, f"{path} in body {bound}")
        case "format":
            return field_errors.invalid_value(
                path, value, f"{path} in body must be of type {limit}: {field_errors.quoted(str(value))}"
            )
        case "anyOf" | "oneOf" | "allOf" | "not":
            # The server names no field for these, only in the sentence.
            return field_errors.invalid_value(
                "<nil>", "", f"{field_errors.quoted(path)} {_WORDING[rule](limit)}"
            )
        case _:
            words = _WORDING.get(str(rule), lambda _: error.message)(limit)
            return field_errors.invalid_value(path, value, f"{path} in body {words}")
