"""Bodies of requests: JSON, YAML where a patch is an apply, and the protobuf of kubectl's typed clients."""

import json
from typing import Any

import yaml
from aiohttp import web

from triage_local.apiserver import protobuf
from triage_local.apiserver.exceptions import BadRequestError, TooLargeError
from triage_local.apiserver.objects import Json, without_nulls
from triage_local.apiserver.typed_schemas import MisfitError, check_types, schema_of


async def read_body(request: web.Request) -> Any:
    """The body's value; None if there is no body. Raises an ApiError for one that cannot be read."""
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise TooLargeError(f"Request entity too large: limit is {request.client_max_size}") from error
    if not raw:
        return None
    if request.content_type == protobuf.CONTENT_TYPE:
        return protobuf.decoded(raw)
    try:
        yaml_only = request.content_type.endswith("yaml") and not raw.lstrip().startswith(b"{")
        value = yaml.safe_load(raw) if yaml_only else json.loads(raw)
        # What JSON cannot say becomes text (a date), and what Unicode cannot say a mark (half a surrogate pair).
        return json.loads(json.dumps(value, ensure_ascii=False, default=str).encode(errors="replace"))
    except (ValueError, yaml.YAMLError) as error:
        raise BadRequestError(f"the body is not valid: {error}") from error


async def read_object(request: web.Request, model: str | None = None) -> Json:
    """The body as an object; an empty one if there is no body. Raises an ApiError for any other body.

    ``model``: name of the official client's model that the types of its fields have to fit.
    """
    value = await read_body(request)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadRequestError("the body must be an object")
    if model is None:
        return value
    fields: Json = without_nulls(value)
    try:
        check_types(schema_of(model), fields)
    except MisfitError as error:
        raise BadRequestError(str(error)) from error
    return fields
