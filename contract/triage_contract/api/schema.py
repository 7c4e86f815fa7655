"""From a model to a structural schema, the subset of OpenAPI that custom resource definitions are made of.

A structural schema has no references, no titles and no null beside a type; see
https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from typing import Any, Final

from triage_contract.api.base import ApiModel

Schema = dict[str, Any]

_REF_PREFIX: Final = "#/$defs/"

_LEADING: Final = ("description", "type", "default", "enum", "required")
"""Keys that a reader looks for first; the others follow in alphabetical order."""


def structural_schema(model: type[ApiModel]) -> Schema:
    """Return the schema of a model's JSON object."""
    schema = model.model_json_schema()
    return _structural(schema, schema.get("$defs", {}))


def _structural(node: Schema, definitions: dict[str, Schema]) -> Schema:
    node = _one_type(node, definitions)
    result = {key: node[key] for key in sorted(node, key=_place) if key not in ("title", "$defs")}
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    properties = {
        name: _structural(field, definitions) for name, field in result.get("properties", {}).items()
    }
    if properties:
        result["properties"] = properties
    match result.get("default"):
        case dict() if any("default" in field for field in properties.values()):
            # The API server fills it from the defaults of the fields, so that each is written once.
            result["default"] = {}
        case dict() | None:
            result.pop("default", None)
    if result.get("additionalProperties") is True:
        # "Anything" is said by x-kubernetes-preserve-unknown-fields.
        del result["additionalProperties"]
    for key in ("items", "additionalProperties"):
        if key in result:
            result[key] = _structural(result[key], definitions)
    return result


def _place(key: str) -> tuple[int, str]:
    return (_LEADING.index(key) if key in _LEADING else len(_LEADING), key)


def _one_type(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return a node without reference and null; what it says itself wins over what it refers to."""
    rest = dict(node)
    if "$ref" in rest:
        target = definitions[rest.pop("$ref").removeprefix(_REF_PREFIX)]
        return _one_type({**target, **rest}, definitions)
    options = [option for option in rest.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        del rest["anyOf"]
        return _one_type({**options[0], **rest}, definitions)
    return rest


def without_defaults(schema: Schema) -> Schema:
    """Return a schema in which nothing has a default."""
    result = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in result:
        result["properties"] = {name: without_defaults(field) for name, field in result["properties"].items()}
    if "items" in result:
        result["items"] = without_defaults(result["items"])
    return result
