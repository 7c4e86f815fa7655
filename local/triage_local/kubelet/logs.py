"""The kubelet's own HTTP endpoint, from which an API server fetches what ``kubectl logs`` shows."""

import asyncio
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from aiohttp import web

from triage_local.kubelet.containers import Container
from triage_local.kubelet.exceptions import NoSuchContainerError
from triage_local.kubelet.machine import HOST_IP

FindContainer = Callable[[str, str, str], Container]
"""From namespace, pod and container; raises NoSuchContainerError."""

_FOLLOW_SECONDS: Final = 0.1
_SHUTDOWN_SECONDS = 0.2


class LogServer:
    """Serves ``GET /containerLogs/{namespace}/{pod}/{container}`` on a loopback port.

    ``tailLines``, ``limitBytes`` and ``follow`` are understood. Lines have no times, since a process writes
    its file itself: ``timestamps`` and ``sinceSeconds`` change nothing.
    """

    def __init__(self, find: FindContainer, tls: ssl.SSLContext | None = None) -> None:
        """Take a way to find containers, and how to encrypt; None: plain HTTP."""
        self._find = find
        self._tls = tls
        self._runner: web.AppRunner | None = None

    async def start(self) -> int:
        """Listen, and return the port."""
        application = web.Application()
        application.add_routes([web.get("/containerLogs/{namespace}/{pod}/{container}", self._serve)])
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST_IP, 0, ssl_context=self._tls).start()
        port: int = self._runner.addresses[0][1]
        return port

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        where = request.match_info
        try:
            container = self._find(where["namespace"], where["pod"], where["container"])
            tail = int(request.query.get("tailLines", -1))
            limit = int(request.query.get("limitBytes", -1))
        except NoSuchContainerError as error:
            return web.Response(status=HTTPStatus.NOT_FOUND, text=str(error))
        except ValueError as error:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=str(error))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with container.log.open("rb") as log:
            if tail >= 0:
                lines = log.readlines()
                log.seek(sum(map(len, lines[: len(lines) - tail])) if tail else 0, 0 if tail else 2)
            while True:
                alive = container.alive  # asked before the read: what is written until the end is read
                data = log.read(limit) if limit >= 0 else log.read()
                await response.write(data)
                if limit >= 0 and (limit := limit - len(data)) == 0:
                    break
                if request.query.get("follow") != "true" or not alive:
                    break
                if not data:
                    await asyncio.sleep(_FOLLOW_SECONDS)
        await response.write_eof()
        return response
