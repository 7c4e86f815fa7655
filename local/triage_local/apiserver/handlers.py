"""Requests to the resources: one method for each verb."""

from typing import Final

from aiohttp import web

from triage_local.apiserver import options, rendering
from triage_local.apiserver.applying import Applier
from triage_local.apiserver.bodies import read_body, read_object
from triage_local.apiserver.exceptions import MethodNotAllowedError, UnsupportedMediaTypeError
from triage_local.apiserver.objects import name_of, namespace_of
from triage_local.apiserver.options import ListOptions, Target
from triage_local.apiserver.patching import PatchType, patched
from triage_local.apiserver.reading import listed
from triage_local.apiserver.resources import Catalogue
from triage_local.apiserver.store import Store
from triage_local.apiserver.subresources import Subresources
from triage_local.apiserver.watching import DEFAULT_TIMEOUT_SECONDS, CutError, Watches, WatchRequest
from triage_local.apiserver.writing import Writer

_VERBS: Final = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("PATCH", True): "patch",
    ("DELETE", True): "delete",
    ("DELETE", False): "deletecollection",
}
"""The verb of a method, on one object or on the list."""


class ResourceHandler:
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
        self._subresources = Subresources(store, writer)
        self._applier = Applier(store, writer)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The answer to a request below ``/api`` or ``/apis``; raises an ApiError to refuse it."""
        target = options.target(request.path, self._catalogue)
        answer = await self._subresources.answer(target, request)
        if answer is not None:
            return answer
        verb = _VERBS.get((request.method, bool(target.name)))
        if verb not in target.resource.verbs:
            raise MethodNotAllowedError("the server does not allow this method on the requested resource")
        match verb:
            case "get" | "list":
                listing = options.list_options(request.query, target.resource, target.name)
                if listing.watch:
                    return await self._watch(target, request, listing)
                return self._get(target, request) if verb == "get" else self._list(target, request, listing)
            case "create":
                return await self._create(target, request)
            case "update":
                return await self._replace(target, request)
            case "patch":
                return await self._patch(target, request)
            case "delete":
                return await self._delete(target, request)
            case _:
                return await self._delete_all(target, request)

    def _get(self, target: Target, request: web.Request) -> web.StreamResponse:
        return rendering.one(target.resource, self._writer.read(target.resource, target.key), request)

    def _list(self, target: Target, request: web.Request, listing: ListOptions) -> web.StreamResponse:
        objects, list_metadata = listed(self._store, target.resource, target.namespace, listing)
        return rendering.many(target.resource, objects, list_metadata, request)

    async def _watch(self, target: Target, request: web.Request, listing: ListOptions) -> web.StreamResponse:
        wanted = WatchRequest(
            resource=target.resource,
            namespace=target.namespace,
            selected=listing.selected,
            rendered=rendering.renderer(target.resource, request),
            version=listing.version,
            timeout_seconds=listing.timeout_seconds or DEFAULT_TIMEOUT_SECONDS,
            bookmarks=listing.bookmarks,
            initial_events=listing.initial_events,
            target=request.path_qs,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        with self._watches.opened(wanted) as watch:
            # Before anything is awaited, so that no write falls between these lines and those that follow.
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
                pass  # The client is gone, and with it the watch.
        return response

    async def _create(self, target: Target, request: web.Request) -> web.StreamResponse:
        sent, asked = await read_object(request), options.write_options(request.query)
        created = self._writer.create(target.resource, target.namespace or "", sent, asked)
        return rendering.one(target.resource, created, request, status=201, warnings=asked.warnings)

    async def _replace(self, target: Target, request: web.Request) -> web.StreamResponse:
        sent, asked = await read_object(request), options.write_options(request.query)
        updated = self._writer.update(
            target.resource,
            target.key,
            lambda _: sent,
            asked,
            subresource=target.subresource,
            replaces=True,
        )
        return rendering.one(target.resource, updated, request, warnings=asked.warnings)

    async def _patch(self, target: Target, request: web.Request) -> web.StreamResponse:
        resource = target.resource
        kinds = [kind for kind in PatchType if not (resource.custom and kind is PatchType.STRATEGIC)]
        if request.content_type not in kinds:
            raise UnsupportedMediaTypeError(
                "the body of the request was in an unknown format - accepted media types include: "
                + ", ".join(kinds)
            )
        kind = PatchType(request.content_type)
        patch, asked = await read_body(request), options.write_options(request.query)
        if kind is PatchType.APPLY:
            applied, made = self._applier.apply(target, patch, asked)
            status = 201 if made else 200
            return rendering.one(resource, applied, request, status=status, warnings=asked.warnings)
        updated = self._writer.update(
            resource,
            target.key,
            lambda old: patched(kind, old, patch),
            asked,
            subresource=target.subresource,
        )
        return rendering.one(resource, updated, request, warnings=asked.warnings)

    async def _delete(self, target: Target, request: web.Request) -> web.StreamResponse:
        asked = options.delete_options(request.query, await read_object(request, "V1DeleteOptions"))
        obj, gone = self._writer.delete(target.resource, target.key, asked)
        if gone and not target.resource.strategy.graceful:
            return rendering.deleted(target.resource, obj)
        return rendering.one(target.resource, obj, request)

    async def _delete_all(self, target: Target, request: web.Request) -> web.StreamResponse:
        asked = options.delete_options(request.query, await read_object(request, "V1DeleteOptions"))
        listing = options.list_options(request.query, target.resource)
        objects, list_metadata = listed(self._store, target.resource, target.namespace, listing)
        for obj in objects:
            self._writer.delete(target.resource, (namespace_of(obj), name_of(obj)), asked)
        return rendering.many(target.resource, objects, list_metadata, request)
