"""The HTTP endpoint: Gemini's two methods, what was asked, and faults."""

import asyncio
import dataclasses
import hashlib
import json
import math
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

from aiohttp import web
from pydantic import ValidationError

from triage_local.model.docs_triage import DocsTriageScript
from triage_local.model.faults import Fault, Faults
from triage_local.model.script import Reply, Script, Turn
from triage_local.model.wire import build_chunks, build_error, build_response, parse_turn

HOST: Final = "127.0.0.1"
_SHUTDOWN_SECONDS = 0.2


@dataclasses.dataclass(slots=True, kw_only=True)
class AskedFor:
    """One request for a reply, as ``GET /requests`` lists it."""

    report: str
    """The user's last words."""
    digest: str
    """Hash of the contents without call ids: two requests with one digest ask the same thing twice."""
    step: str
    """Name of the first tool that the reply calls, or ``text``."""
    model: str
    streamed: bool
    status: int | None = None
    """HTTP status of the answer; None while it is awaited, or where the client left without it."""


class ScriptedModel:
    """A model endpoint; point ``GOOGLE_GEMINI_BASE_URL`` at ``url``.

    ``POST /v1beta/models/{model}:generateContent`` and ``:streamGenerateContent`` answer by the script.
    ``GET /requests`` lists what was asked, ``DELETE /requests`` forgets it. ``POST /faults`` takes a
    ``Fault``, ``DELETE /faults`` clears all, ``POST /release`` lets go what hangs.
    """

    def __init__(self, script: Script | None = None, *, host: str = HOST, port: int = 0) -> None:
        """Prepare, and listen to nothing yet.

        Args:
            script: By default that of the docs-triage agent.
            host: Address to listen on: the loopback address, unless it is in a pod of its own.
            port: TCP port; 0 takes a free one.
        """
        self.faults = Faults()
        self.requests: list[AskedFor] = []
        self._script = script or DocsTriageScript()
        self._host = host
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Base URL, once started."""
        return f"http://{self._host}:{self._port}"

    def asked(self, report: str) -> list[AskedFor]:
        """The requests whose report contains these words, oldest first."""
        return [request for request in self.requests if report in request.report]

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The port is taken.
        """
        application = web.Application(client_max_size=64 * 2**20)
        application.add_routes(
            [
                web.post("/v1beta/models/{model:[^:]+}:generateContent", self._generate),
                web.post("/v1beta/models/{model:[^:]+}:streamGenerateContent", self._stream),
                web.get("/requests", self._list_requests),
                web.delete("/requests", self._forget_requests),
                web.post("/faults", self._add_fault),
                web.delete("/faults", self._clear_faults),
                web.post("/release", self._release),
            ]
        )
        # A handler ends when its client is gone: a request that hangs must not outlive a killed agent.
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        self._port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening, and break off what hangs."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _generate(self, request: web.Request) -> web.StreamResponse:
        answer = await self._answer(request, streamed=False)
        if isinstance(answer, web.Response):
            return answer
        reply, turn, asked = answer
        asked.status = HTTPStatus.OK
        return web.json_response(build_response(reply, turn, asked.digest))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        answer = await self._answer(request, streamed=True)
        if isinstance(answer, web.Response):
            return answer
        reply, turn, asked = answer
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in build_chunks(reply, turn, asked.digest):
            await response.write(f"data: {json.dumps(chunk)}\r\n\r\n".encode())
        await response.write_eof()
        asked.status = HTTPStatus.OK
        return response

    async def _answer(
        self, request: web.Request, *, streamed: bool
    ) -> web.Response | tuple[Reply, Turn, AskedFor]:
        """Count a request, let its fault befall it, and give what is to be said; or a refusal as it is."""
        try:
            body = await request.json()
            turn = parse_turn(request.match_info["model"], body)
            reply = self._script(turn)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _refuse(HTTPStatus.BAD_REQUEST, f"Invalid request: {error!r}")
        asked = AskedFor(
            report=turn.report,
            digest=_digest(turn.contents),
            step=reply.step,
            model=turn.model,
            streamed=streamed,
        )
        self.requests.append(asked)
        fault = self.faults.take(turn.report, reply.step)
        if fault is not None:
            await asyncio.sleep(fault.delay_seconds)
            if fault.hang:
                await self.faults.released()
            if fault.status is not None:
                asked.status = fault.status
                return _refuse(fault.status, "A fault was asked for.", fault.retry_after_seconds)
        return reply, turn, asked

    async def _list_requests(self, _request: web.Request) -> web.Response:
        return web.json_response({"requests": [dataclasses.asdict(asked) for asked in self.requests]})

    async def _forget_requests(self, _request: web.Request) -> web.Response:
        self.requests.clear()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _add_fault(self, request: web.Request) -> web.Response:
        try:
            self.faults.add(Fault.model_validate_json(await request.read()))
        except ValidationError as error:
            return _refuse(HTTPStatus.BAD_REQUEST, str(error))
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _clear_faults(self, _request: web.Request) -> web.Response:
        self.faults.clear()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def _release(self, _request: web.Request) -> web.Response:
        self.faults.release()
        return web.Response(status=HTTPStatus.NO_CONTENT)


def _refuse(status: int, message: str, retry_after_seconds: float | None = None) -> web.Response:
    # Retry-After has whole seconds (RFC 9110, 10.2.3).
    headers = {} if retry_after_seconds is None else {"Retry-After": str(math.ceil(retry_after_seconds))}
    return web.json_response(
        build_error(status, message, retry_after_seconds), status=status, headers=headers
    )


def _digest(contents: object) -> str:
    return hashlib.sha256(json.dumps(_without_ids(contents), sort_keys=True).encode()).hexdigest()[:16]


def _without_ids(value: object) -> object:
    """Contents without the ids of calls and answers, which may be new each time that the same is asked."""
    match value:
        case {"functionCall": dict(call)}:
            return {"functionCall": {key: inner for key, inner in call.items() if key != "id"}}
        case {"functionResponse": dict(answer)}:
            return {"functionResponse": {key: inner for key, inner in answer.items() if key != "id"}}
        case dict():
            return {key: _without_ids(inner) for key, inner in value.items()}
        case list():
            return [_without_ids(inner) for inner in value]
    return value
