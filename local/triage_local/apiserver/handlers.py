"""Requests to the API: one method for each verb, and the answers in the shape that the client asked for."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import yaml
from aiohttp import web

from triage_local.apiserver import discovery, openapi, options, tables
from triage_local.apiserver.exceptions import (
    ApiError,
    BadRequestError,
    MethodNotAllowedError,
    NotFoundError,
    TooLargeError,
    UnsupportedMediaTypeError,
)
from triage_local.apiserver.faults import Faults
from triage_local.apiserver.objects import Json, metadata, name_of, uid_of
from triage_local.apiserver.options import ListOptions, Target
from triage_local.apiserver.patching import PatchType, patched
from triage_local.apiserver.reading import listed
from triage_local.apiserver.resources import Catalogue, Resource
from triage_local.apiserver.store import Store
from triage_local.apiserver.subresources import Subresources
from triage_local.apiserver.tables import Shape
from triage_local.apiserver.watching import DEFAULT_TIMEOUT_SECONDS, CutError, Watches, WatchRequest
from triage_local.apiserver.writing import WriteOptions, Writer

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """The verbs of the API over one store."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        writer: Writer,
        watches: Watches,
        *,
        bookmark_seconds: float,
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._writer = writer
        self._watches = watches
        self._bookmark_seconds = bookmark_seconds
        self._subresources = Subresources(store, catalogue, writer)

    def add_routes(self, application: web.Application, faults: Faults) -> None:
        """Serve discovery and every resource, each request through the faults."""

        def route(method: str, path: str, handler: _Handler) -> None:
            application.router.add_route(method, path, _refusing(handler, faults))

        route("GET", "/version", self._version)
        route("GET", "/api", self._core_versions)
        route("GET", "/apis", self._groups)
        route("GET", "/apis/{group}", self._group)
        route("GET", "/apis/{group}/{version}", self._resources)
        route("GET", "/api/{version}", self._resources)
        for path in ("/healthz", "/livez", "/readyz"):
            route("GET", path, _healthy)
        route("GET", "/openapi/v3", self._openapi_index)
        route("GET", "/openapi/v3/{path:.+}", self._openapi)
        route("*", "/{path:apis?/.+}", self._resource)
        route("*", "/{path:.*}", _nothing)

    async def _version(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(discovery.VERSION)

    async def _core_versions(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(discovery.core_versions())

    async def _groups(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(discovery.groups(self._catalogue))

    async def _group(self, request: web.Request) -> web.StreamResponse:
        return _found(discovery.group(request.match_info["group"], self._catalogue))

    async def _resources(self, request: web.Request) -> web.StreamResponse:
        group, version = request.match_info.get("group", ""), request.match_info["version"]
        return _found(discovery.resources(group, version, self._catalogue))

    async def _openapi_index(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(openapi.index(self._catalogue))

    async def _openapi(self, request: web.Request) -> web.StreamResponse:
        return _found(openapi.document(request.match_info["path"], self._catalogue))

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        target = options.target(request.path, self._catalogue)
        handled = await self._subresources.handled(target, request)
        if handled is not None:
            return handled
        match request.method, bool(target.name):
            case "GET", one:
                listing = options.list_options(request.query, target.resource, target.name if one else "")
                if listing.watch:
                    return await self._watch(target, request, listing)
                return self._get(target, request) if one else self._list(target, request, listing)
            case "POST", False:
                return self._create(target, request, await body(request))
            case "PUT", True:
                return self._replace(target, request, await body(request))
            case "PATCH", True:
                return self._patch(target, request, await body(request))
            case "DELETE", True:
                return self._delete(target, request, await body(request))
            case "DELETE", False:
                return self._delete_all(target, request, await body(request))
        raise MethodNotAllowedError("the server does not allow this method on the requested resource")

    def _get(self, target: Target, request: web.Request) -> web.StreamResponse:
        obj = self._writer.read(target.resource, target.key)
        return _one(target.resource, obj, request)

    def _list(self, target: Target, request: web.Request, listing: ListOptions) -> web.StreamResponse:
        resource = target.resource
        objects, list_metadata = listed(self._store, resource, target.namespace, listing)
        shown = [resource.shown(obj) for obj in objects]
        match tables.wanted_shape(request.headers.get("Accept", "")):
            case Shape.TABLE:
                include = request.query.get("includeObject", "Metadata")
                return web.json_response(tables.table(resource, shown, list_metadata, include=include))
            case Shape.METADATA_LIST:
                return web.json_response(
                    {
                        "kind": "PartialObjectMetadataList",
                        "apiVersion": "meta.k8s.io/v1",
                        "metadata": list_metadata,
                        "items": [tables.partial(obj) for obj in shown],
                    }
                )
            case _:
                return web.json_response(
                    {
                        "kind": resource.list_kind,
                        "apiVersion": resource.api_version,
                        "metadata": list_metadata,
                        "items": shown,
                    }
                )

    async def _watch(self, target: Target, request: web.Request, listing: ListOptions) -> web.StreamResponse:
        wanted = WatchRequest(
            resource=target.resource,
            namespace=target.namespace,
            selected=listing.selected,
            rendered=_renderer(target.resource, request),
            version=listing.version,
            timeout_seconds=listing.timeout_seconds or DEFAULT_TIMEOUT_SECONDS,
            bookmarks=listing.bookmarks,
            initial_events=listing.initial_events,
            target=request.path_qs,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        with self._watches.opened(wanted) as watch:
            initial = list(watch.initial())
            await response.prepare(request)
            for line in initial:
                await response.write(line)
            try:
                async for line in watch.following(self._bookmark_seconds):
                    await response.write(line)
            except CutError:
                if request.transport is not None:
                    request.transport.abort()
            except ConnectionResetError:
                pass
        return response

    def _create(self, target: Target, request: web.Request, sent: Any) -> web.StreamResponse:
        asked = options.write_options(request.query)
        created = self._writer.create(target.resource, target.namespace or "", _object(sent), asked)
        return _one(target.resource, created, request, status=201, asked=asked)

    def _replace(self, target: Target, request: web.Request, sent: Any) -> web.StreamResponse:
        asked = options.write_options(request.query)
        new = _object(sent)
        updated = self._writer.update(
            target.resource,
            target.key,
            lambda _: new,
            asked,
            subresource=target.subresource,
            unconditional=False,
        )
        return _one(target.resource, updated, request, asked=asked)

    def _patch(self, target: Target, request: web.Request, patch: Any) -> web.StreamResponse:
        asked = options.write_options(request.query)
        resource = target.resource
        kinds = [kind for kind in PatchType if not (resource.custom and kind is PatchType.STRATEGIC)]
        if request.content_type not in kinds:
            raise UnsupportedMediaTypeError(
                "the body of the request was in an unknown format - accepted media types include: "
                + ", ".join(kinds)
            )
        kind = PatchType(request.content_type)
        updated = self._writer.update(
            resource, target.key, lambda old: patched(kind, old, patch), asked, subresource=target.subresource
        )
        return _one(resource, updated, request, asked=asked)

    def _delete(self, target: Target, request: web.Request, sent: Any) -> web.StreamResponse:
        asked = options.delete_options(request.query, _object(sent) if sent is not None else {})
        obj, gone = self._writer.delete(target.resource, target.key, asked)
        if gone and target.resource.plural != "pods":
            return web.json_response(_deleted(target.resource, obj))
        return _one(target.resource, obj, request)

    def _delete_all(self, target: Target, request: web.Request, sent: Any) -> web.StreamResponse:
        asked = options.delete_options(request.query, _object(sent) if sent is not None else {})
        listing = options.list_options(request.query, target.resource)
        objects, _ = listed(self._store, target.resource, target.namespace, listing)
        deleted = [
            self._writer.delete(target.resource, (metadata(obj).get("namespace", ""), name_of(obj)), asked)[0]
            for obj in objects
        ]
        return web.json_response(
            {
                "kind": target.resource.list_kind,
                "apiVersion": target.resource.api_version,
                "metadata": {"resourceVersion": str(self._store.version)},
                "items": [target.resource.shown(obj) for obj in deleted],
            }
        )


async def body(request: web.Request) -> Any:
    """The request's body as JSON; None if it has none. YAML is read where the content type says so."""
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise TooLargeError("Request entity too large") from error
    if not raw:
        return None
    try:
        return yaml.safe_load(raw) if "yaml" in request.content_type and raw[:1] != b"{" else json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise BadRequestError(f"the body is not valid: {error}") from error


def _object(sent: Any) -> Json:
    if not isinstance(sent, dict):
        raise BadRequestError("the body must be an object")
    return sent


def _one(
    resource: Resource,
    obj: Json,
    request: web.Request,
    *,
    status: int = 200,
    asked: WriteOptions | None = None,
) -> web.StreamResponse:
    headers = [("Warning", f"299 - {json.dumps(text)}") for text in (asked.warnings if asked else [])]
    response = web.json_response(_renderer(resource, request)(obj), status=status)
    for name, value in headers:
        response.headers.add(name, value)
    return response


def _renderer(resource: Resource, request: web.Request) -> Callable[[Json], Json]:
    """How one object is shown to this client."""
    shape = tables.wanted_shape(request.headers.get("Accept", ""))
    include = request.query.get("includeObject", "Metadata")

    def rendered(obj: Json) -> Json:
        shown = resource.shown(obj)
        if shape is Shape.TABLE:
            list_metadata = {"resourceVersion": metadata(obj)["resourceVersion"]}
            return tables.table(resource, [shown], list_metadata, include=include)
        return tables.partial(shown) if shape is Shape.METADATA else shown

    return rendered


def _deleted(resource: Resource, obj: Json) -> Json:
    details = {"name": name_of(obj), "group": resource.group, "kind": resource.plural, "uid": uid_of(obj)}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }


def _refusing(handler: _Handler, faults: Faults) -> _Handler:
    """The handler behind the faults, its errors as answers."""

    async def handled(request: web.Request) -> web.StreamResponse:
        try:
            fault = faults.next_answer(request.method, request.path_qs)
            if fault is not None:
                await asyncio.sleep(fault.delay_seconds)
                refusal = fault.refusal()
                if refusal is not None:
                    raise refusal
            return await handler(request)
        except ApiError as error:
            headers = {}
            if error.retry_after_seconds is not None:
                headers["Retry-After"] = str(error.retry_after_seconds)
            return web.json_response(error.status(), status=error.code, headers=headers)

    return handled


async def _healthy(_: web.Request) -> web.StreamResponse:
    return web.Response(text="ok")


async def _nothing(_: web.Request) -> web.StreamResponse:
    raise NotFoundError("the server could not find the requested resource")


def _found(answer: Json | None) -> web.StreamResponse:
    if answer is None:
        raise NotFoundError("the server could not find the requested resource")
    return web.json_response(answer)
