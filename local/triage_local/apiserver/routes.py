"""Which path is answered by what, and how a refusal becomes an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp import web

from triage_local.apiserver import discovery, openapi
from triage_local.apiserver.exceptions import ApiError
from triage_local.apiserver.faults import Faults
from triage_local.apiserver.handlers import ResourceHandler
from triage_local.apiserver.objects import Json
from triage_local.apiserver.resources import Catalogue

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def api_routes(catalogue: Catalogue, resources: ResourceHandler, faults: Faults) -> list[web.RouteDef]:
    """The routes of discovery, health and resources, each of them behind the faults."""

    def answering(answer: Callable[[web.Request], Json | None]) -> _Handler:
        async def handler(request: web.Request) -> web.StreamResponse:
            body = answer(request)
            if body is None:
                raise _nothing()
            return web.json_response(body)

        return handler

    async def healthy(_: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def nothing(_: web.Request) -> web.StreamResponse:
        raise _nothing()

    def listed_resources(request: web.Request) -> Json | None:
        return discovery.resources(
            request.match_info.get("group", ""), request.match_info["version"], catalogue
        )

    handlers: list[tuple[str, str, _Handler]] = [
        ("GET", "/healthz", healthy),
        ("GET", "/livez", healthy),
        ("GET", "/readyz", healthy),
        ("GET", "/version", answering(lambda _: discovery.VERSION)),
        ("GET", "/api", answering(lambda _: discovery.core_versions())),
        ("GET", "/api/{version}", answering(listed_resources)),
        ("GET", "/apis", answering(lambda _: discovery.groups(catalogue))),
        (
            "GET",
            "/apis/{group}",
            answering(lambda request: discovery.group(request.match_info["group"], catalogue)),
        ),
        ("GET", "/apis/{group}/{version}", answering(listed_resources)),
        ("GET", "/openapi/v3", answering(lambda _: openapi.index(catalogue))),
        (
            "GET",
            "/openapi/v3/{path:.+}",
            answering(lambda request: openapi.document(request.match_info["path"], catalogue)),
        ),
        ("*", "/api/{version}/{path:.+}", resources.handle),
        ("*", "/apis/{group}/{version}/{path:.+}", resources.handle),
        ("*", "/{path:.*}", nothing),
    ]
    return [web.route(method, path, _refusing(handler, faults)) for method, path, handler in handlers]


def _nothing() -> web.HTTPNotFound:
    """The answer to a path that belongs to no group: plain text, as a real server gives it."""
    return web.HTTPNotFound(text="404 page not found\n")


def _refusing(handler: _Handler, faults: Faults) -> _Handler:
    """The handler behind the faults, its refusals and theirs as answers."""

    async def handled(request: web.Request) -> web.StreamResponse:
        try:
            fault = faults.next_answer(request.method, request.path_qs)
            if fault is None:
                return await handler(request)
            answer = await handler(request) if fault.applied else None
            await asyncio.sleep(fault.delay_seconds)
            refusal = fault.refusal()
            if refusal is not None:
                raise refusal
            return answer or await handler(request)
        except ApiError as error:
            seconds = error.retry_after_seconds
            headers = {} if seconds is None else {"Retry-After": str(seconds)}
            return web.json_response(error.status(), status=error.code, headers=headers)

    return handled
