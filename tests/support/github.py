"""GitHub's REST API as far as issues need it, with faults that a test chooses for the next requests."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

REPOSITORY = "acme/docs"
TOKEN = "ghp-of-the-tests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request of a method."""

    method: str
    status: int | None = None
    """Answered instead; None: nothing is, and the connection is closed."""
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Any = field(default_factory=lambda: {"message": "Server Error"})
    writes: bool = False
    """The request has had its effect all the same."""
    before: asyncio.Event | None = None
    """What is waited for before the effect, also when the client has left."""
    after: asyncio.Event | None = None
    """What is waited for between the effect and the answer."""


@dataclass(slots=True, kw_only=True)
class GitHub:
    """``issues`` is what is filed, the oldest first; ``requests`` are the methods asked for, in order."""

    url: str = ""
    issues: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    handling: set[asyncio.Task[Any]] = field(default_factory=set)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a request has met a fault: it waits, or is about to be answered."""

    def add(
        self, body: str | None, *, title: str = "Title", created_at: datetime | None = None, **more: Any
    ) -> int:
        """File an issue as anybody may, and give its number."""
        number = len(self.issues) + 1
        stamp = (created_at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        issue = {"number": number, "title": title, "body": body, "created_at": stamp, "updated_at": stamp}
        self.issues.append({**issue, **more})
        return number

    async def quiet(self) -> None:
        """Wait until every request has been dealt with, also those whose clients have left."""
        while self.handling:
            await asyncio.wait(set(self.handling))

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Serve one request, with the first fault that is meant for it."""
        task = asyncio.current_task()
        assert task is not None
        self.handling.add(task)
        task.add_done_callback(self.handling.discard)
        self.requests.append(request.method)
        fault = next((it for it in self.faults if it.method == request.method), None)
        if fault is None:
            return await self._serve(request)
        self.faults.remove(fault)
        content = await request.read()
        if fault.before is not None:
            self.came.set()
            await fault.before.wait()
        if fault.writes:
            assert content
            await self._serve(request)
        self.came.set()
        if fault.after is not None:
            await fault.after.wait()
        if fault.status is None:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.json_response(fault.content, status=fault.status, headers=_dated(fault.headers))

    async def _serve(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"message": "Bad credentials"}, status=401)
        if request.match_info["repository"] != REPOSITORY:
            return web.json_response({"message": "Not Found"}, status=404)
        return self._list(request) if request.method == "GET" else await self._file(request)

    async def _file(self, request: web.Request) -> web.Response:
        content = await request.json()
        if not content.get("title"):
            problem = {"resource": "Issue", "field": "title", "code": "missing_field"}
            return web.json_response({"message": "Validation Failed", "errors": [problem]}, status=422)
        number = self.add(content["body"], title=content["title"])
        return web.json_response(self.issues[number - 1], status=201)

    def _list(self, request: web.Request) -> web.Response:
        query = request.query
        size, page = int(query.get("per_page", 30)), int(query.get("page", 1))
        assert (query["sort"], query["state"]) == ("created", "all")
        found = [it for it in self.issues if it["updated_at"] >= query.get("since", "")]
        found.sort(key=lambda it: (it["created_at"], it["number"]), reverse=query["direction"] == "desc")
        shown = found[(page - 1) * size : page * size]
        headers = {}
        if page * size < len(found):
            following = request.url.update_query(page=page + 1)
            headers["Link"] = f'<{following}>; rel="next", <{request.url}>; rel="first"'
        return web.json_response(shown, headers=headers)


def _dated(headers: Mapping[str, str]) -> Mapping[str, str]:
    return {"Date": formatdate(time.time(), usegmt=True), **headers}


@asynccontextmanager
async def github() -> AsyncIterator[GitHub]:
    """Serve an empty repository on a free port of the loopback interface."""
    there = GitHub()
    app = web.Application()
    app.router.add_route("*", "/api/v3/repos/{repository:[^/]+/[^/]+}/issues", there.answer)
    server = TestServer(app)
    await server.start_server()
    there.url = f"http://127.0.0.1:{server.port}/api/v3"
    try:
        yield there
    finally:
        await server.close()
