"""An HTTP endpoint that answers every model request in one way that a test chooses."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer


@dataclass(slots=True, kw_only=True)
class Answer:
    """What the endpoint says; ``body`` None: nothing, for as long as the caller waits."""

    status: int = 200
    body: str | None = "{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(slots=True)
class ModelEndpoint:
    """``requests`` holds path and JSON body of each request in order."""

    url: str
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@asynccontextmanager
async def model_endpoint(answer: Answer) -> AsyncIterator[ModelEndpoint]:
    """Serve ``answer`` on a free port of the loopback interface."""
    asked = ModelEndpoint(url="")
    gone = asyncio.Event()

    async def respond(request: web.Request) -> web.Response:
        asked.requests.append((request.path, await request.json()))
        if answer.body is None:
            await gone.wait()
        return web.Response(
            status=answer.status,
            text=answer.body,
            headers=answer.headers,
            content_type=answer.content_type,
        )

    app = web.Application()
    app.router.add_post("/{path:.*}", respond)
    server = TestServer(app)
    await server.start_server()
    asked.url = f"http://127.0.0.1:{server.port}"
    try:
        yield asked
    finally:
        gone.set()
        await server.close()
