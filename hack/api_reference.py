"""The API reference, from the schema in the custom resource definitions."""

import json
from collections.abc import Iterator
from typing import Any, Final

from triage_contract.api.crds import KINDS, Kind, build_schema
from triage_contract.names import API_VERSION

_PREAMBLE: Final = f"""<!-- Made by hack/generate.py from contract/triage_contract/api; edit the models. -->
# API reference

Both kinds are namespaced and belong to `{API_VERSION}`. A field in **bold** is required.
`kubectl explain triagerun.spec` shows the same texts.
"""

_BOUNDS: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " entries"),
    ("minProperties", "maxProperties", " entries"),
)


def render_api_reference() -> str:
    """Return the page, in Markdown."""
    return "\n".join([_PREAMBLE, *(_render_kind(kind) for kind in KINDS)])


def _render_kind(kind: Kind) -> str:
    schema = build_schema(kind)
    lines = [f"## {kind.name}", "", f"{schema['description']} Short name `{kind.short}`."]
    for part in ("spec", "status"):
        top = schema["properties"][part]
        lines += ["", f"### {kind.name} {part}", "", top["description"], ""]
        lines += ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
        lines += [
            row for name, field in _fields(top) for row in _rows(name, field, name in top.get("required", ()))
        ]
    return "\n".join([*lines, ""])


def _fields(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from schema.get("properties", {}).items()


def _rows(path: str, field: dict[str, Any], required: bool) -> Iterator[str]:
    meaning = [
        field["description"],
        *(f"Rule: {rule['message']}." for rule in field.get("x-kubernetes-validations", ())),
    ]
    name = f"**`{path}`**" if required else f"`{path}`"
    default = f"`{json.dumps(field['default'])}`" if field.get("default", {}) not in ({}, "") else ""
    yield f"| {name} | {_type(field)} | {default} | {' '.join(meaning)} |"
    inner, suffix = (field["items"], "[]") if field.get("type") == "array" else (field, "")
    for child, schema in _fields(inner):
        yield from _rows(f"{path}{suffix}.{child}", schema, child in inner.get("required", ()))


def _type(field: dict[str, Any]) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    values = field.get("additionalProperties")
    if values:
        return ", ".join([f"map of {_type(values)}", *_bounds(field)])
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    kind = {"date-time": "time"}.get(field.get("format", ""), field["type"])
    return ", ".join([kind, *_bounds(field)])


def _bounds(field: dict[str, Any]) -> Iterator[str]:
    for lower, upper, unit in _BOUNDS:
        if lower in field and upper in field:
            yield f"{field[lower]} to {field[upper]}{unit}"
        elif lower in field:
            yield f"at least {field[lower]}{unit}"
        elif upper in field:
            yield f"at most {field[upper]}{unit}"
