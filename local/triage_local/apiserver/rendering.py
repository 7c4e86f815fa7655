"""Answers in the shape that the client asked for: objects, tables, or metadata alone."""

import json
from collections.abc import Callable, Sequence

from aiohttp import web

from triage_local.apiserver import tables
from triage_local.apiserver.objects import Json, metadata, name_of, uid_of
from triage_local.apiserver.resources import Resource
from triage_local.apiserver.tables import Shape


def renderer(resource: Resource, request: web.Request) -> Callable[[Json], Json]:
    """How one stored object is shown to this client."""
    shape, include = _wanted(request)

    def rendered(obj: Json) -> Json:
        shown = resource.shown(obj)
        if shape is Shape.TABLE:
            list_metadata = {"resourceVersion": metadata(obj).get("resourceVersion", "")}
            return tables.table(resource, [shown], list_metadata, include=include)
        return tables.partial(shown) if shape is Shape.METADATA else shown

    return rendered


def one(
    resource: Resource, obj: Json, request: web.Request, *, status: int = 200, warnings: Sequence[str] = ()
) -> web.Response:
    """The answer that is one object."""
    response = web.json_response(renderer(resource, request)(obj), status=status)
    for text in warnings:
        response.headers.add("Warning", f"299 - {json.dumps(text)}")
    return response


def many(
    resource: Resource, objects: Sequence[Json], list_metadata: Json, request: web.Request
) -> web.Response:
    """The answer that is a list."""
    shape, include = _wanted(request)
    shown = [resource.shown(obj) for obj in objects]
    if shape is Shape.TABLE:
        return web.json_response(tables.table(resource, shown, list_metadata, include=include))
    kind, version = resource.list_kind, resource.api_version
    if shape is Shape.METADATA_LIST:
        kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        shown = [tables.partial(obj) for obj in shown]
    return web.json_response({"kind": kind, "apiVersion": version, "metadata": list_metadata, "items": shown})


def success(*, status: int = 200, **details: str) -> web.Response:
    """The answer that is no object: it is done."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    named = {key: value for key, value in details.items() if value}
    return web.json_response({**body, "details": named} if named else {**body, "code": status}, status=status)


def deleted(resource: Resource, obj: Json) -> web.Response:
    """The answer to the deletion of an object that is gone."""
    return success(name=name_of(obj), group=resource.group, kind=resource.plural, uid=uid_of(obj))


def _wanted(request: web.Request) -> tuple[Shape, str]:
    accept = request.headers.get("Accept", "")
    return tables.wanted_shape(accept), request.query.get("includeObject", "Metadata")
