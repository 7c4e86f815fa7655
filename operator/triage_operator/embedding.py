"""kopf: it watches, in a thread of its own, and tells what it sees. Nothing else of the operator hangs on it.

A thread, since kopf takes its event loop for its own: when it ends, it waits for every task that is younger than
itself and then cancels it, and some of its own tasks outlive a failure. How it is set up follows from how it
fails: on some errors it ends, and so does the process, which is then started again; others it retries only as often
as it is told to; and everything that makes it write to objects is left alone.
"""

import asyncio
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import kopf

from triage_contract.names import GROUP, VERSION
from triage_operator.hearing import INACTIVITY_SECONDS, WATCH_SECONDS, Hearing
from triage_operator.kube import PAGE, Kube, Object
from triage_operator.resources import AGENTS, OUR_PODS, PODS, RUNS

See = Callable[[str, str | None, Object], None]
"""Takes what a watch told: resource, event type (None: it was there at the start), object."""

STOP_SECONDS: Final = 3.0
"""For kopf to end in order; its thread does not keep the process."""

_REQUEST_SECONDS: Final = 30.0


class Watcher:
    """Watches ``resources``, by their plural names: of pods those of attempts. ``namespaces`` empty: everywhere."""

    def __init__(
        self,
        kube: Kube,
        *,
        resources: tuple[str, ...],
        see: See,
        hearing: Hearing,
        namespaces: tuple[str, ...],
    ) -> None:
        self._kube = kube
        self._resources = resources
        self._see = see
        self._hearing = hearing
        self._namespaces = namespaces

    async def work(self) -> None:
        """Watch until cancelled; ``see`` is called in this event loop.

        Raises:
            Exception: whatever kopf failed of.
        """
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        stop = threading.Event()

        def run() -> None:
            error: BaseException | None = None
            try:
                asyncio.run(self._run_kopf(loop, ended, stop))
            # Whatever it is, it belongs into the other thread.
            except BaseException as failure:  # noqa: BLE001
                error = failure
            # The loop may be closed by now, if nobody waits for this thread any more.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_settle, ended, error)

        threading.Thread(target=run, name="kopf", daemon=True).start()
        try:
            await asyncio.shield(ended)
        finally:
            stop.set()
            await asyncio.wait((ended,), timeout=STOP_SECONDS)

    async def _run_kopf(
        self, loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None], stop: threading.Event
    ) -> None:
        tasks = await kopf.spawn_tasks(
            registry=self._registry(loop),
            settings=kopf_settings(),
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=stop,
        )
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                # Told at once: after a failure kopf's own end may never come.
                if (error := task.exception()) is not None:
                    loop.call_soon_threadsafe(_settle, ended, error)
            await kopf.run_tasks(tasks)
        finally:
            # kopf leaves a thread that waits for the flag, and the loop waits for that.
            stop.set()

    def _registry(self, loop: asyncio.AbstractEventLoop) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.login(registry=registry)
        async def log_in(**_: Any) -> kopf.AiohttpSession:
            session = self._kube.session(self._hearing.notice)
            return kopf.AiohttpSession(server=self._kube.server, aiohttp_session=session)

        def handler(resource: str) -> Callable[..., Any]:
            async def tell(event: kopf.RawEvent, **_: Any) -> None:
                self._hearing.hear(resource)
                loop.call_soon_threadsafe(self._see, resource, event["type"], event["object"])

            return tell

        for resource in self._resources:
            group, version = (GROUP, VERSION) if resource in (RUNS, AGENTS) else ("", "v1")
            kopf.on.event(group, version, resource, id=resource, registry=registry)(handler(resource))
        return registry


class _Forever:
    """Waits between tries that never end: an API server that is away for an hour comes back."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((0.5, 1, 2, 4), itertools.repeat(8))


def kopf_settings() -> kopf.OperatorSettings:
    """Give kopf's settings; see the head of this module."""
    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = None
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.posting.loggers = False
    settings.watching.label_selectors["v1", PODS] = OUR_PODS
    # The nodes of a large cluster are tens of megabytes.
    settings.watching.chunk_size = int(PAGE)
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    settings.networking.request_timeout = _REQUEST_SECONDS
    settings.networking.error_backoffs = _Forever()
    return settings


def _settle(ended: asyncio.Future[None], error: BaseException | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error)
