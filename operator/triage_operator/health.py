"""What the operator serves: its metrics, whether it lives, and whether it is ready."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from triage_operator.settings import ServingSettings

Fault = Callable[[], str | None]
"""Says in a sentence what is wrong; None: nothing."""


@asynccontextmanager
async def serving(
    settings: ServingSettings, *, scrape: Callable[[], Awaitable[bytes]], alive: Fault, ready: Fault
) -> AsyncIterator[int]:
    """Serve ``/metrics``, ``/healthz`` and ``/readyz`` until the block ends; gives the port.

    A red answer is a 503 with the sentence.
    """

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=await scrape(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.router.add_get("/metrics", metrics)
    application.router.add_get("/healthz", _answer(alive))
    application.router.add_get("/readyz", _answer(ready))
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.host, settings.port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _answer(fault: Fault) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_request: web.Request) -> web.Response:
        said = fault()
        return web.Response(status=200 if said is None else 503, text=f"{said or 'ok'}\n")

    return answer
