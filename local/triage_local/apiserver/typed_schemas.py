"""Schemas of the built-in types, read off the models of the official client."""

import functools
from typing import Any, Final

from kubernetes.aio import client

from triage_local.apiserver.objects import Json
from triage_local.apiserver.quantities import is_quantity

_QUANTITIES: Final = ("allocatable", "capacity", "limits", "overhead", "requests")
"""Mappings whose values may be numbers although they are kept as text."""
_GO_NAMES: Final = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


class MisfitError(ValueError):
    """A value is of another type than its field."""


@functools.cache
def schema_of(model: str) -> Json:
    """The structural schema of a model such as ``V1Pod``. Types that are used twice are one object in it."""
    source = getattr(client, model).model_json_schema(by_alias=True)
    known: dict[str, Json] = {}

    def converted(node: Any, field: str = "") -> Json:
        if node is True or not {"$ref", "anyOf", "type"} & set(node):
            return {"x-kubernetes-preserve-unknown-fields": True}
        if "$ref" in node:
            name = node["$ref"].rpartition("/")[2]
            if name not in known:
                known[name] = {}
                known[name].update(converted(source["$defs"][name]))
            return known[name]
        if "anyOf" in node:
            choices = [converted(choice, field) for choice in node["anyOf"] if choice.get("type") != "null"]
            if len(choices) == 1:
                return choices[0]
            kinds = [choice["type"] for choice in choices]
            return {"type": kinds, "x-kubernetes-preserve-unknown-fields": True}
        result: Json = {key: node[key] for key in ("type",) if key in node}
        if "items" in node:
            result["items"] = converted(node["items"])
        if "properties" in node:
            result["properties"] = {name: converted(item, name) for name, item in node["properties"].items()}
        elif node.get("type") == "object":
            result["additionalProperties"] = (
                {"format": "quantity"} if field in _QUANTITIES else converted(node["additionalProperties"])
            )
        return result

    return converted(source)


def check_types(schema: Json, value: Any, path: str = "") -> None:
    """Raise MisfitError for the first value whose type is not its field's."""
    if schema.get("format") == "quantity":
        if isinstance(value, bool) or not isinstance(value, int | float | str) or not is_quantity(str(value)):
            raise MisfitError(
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            )
        return
    kinds = schema.get("type")
    if kinds is None:
        return
    names = kinds if isinstance(kinds, list) else [kinds]
    allowed = tuple(kind for name in names for kind in _TYPES[name])
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        found = _GO_NAMES.get(type(value), "null")
        raise MisfitError(f"json: cannot unmarshal {found} into Go struct field {path} of type {names[0]}")
    if isinstance(value, dict):
        properties: Json = schema.get("properties") or {}
        additional: Json = schema.get("additionalProperties") or {}
        for key, item in value.items():
            check_types(properties.get(key, additional), item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            check_types(schema.get("items") or {}, item, path)
