"""The server: sockets, the routes outside the API proper, and what runs beside the requests."""

import asyncio
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import yaml
from aiohttp import web

from triage_local.apiserver.builtin_resources import builtin_resources
from triage_local.apiserver.controllers import Controllers
from triage_local.apiserver.fault_routes import fault_routes
from triage_local.apiserver.faults import Faults
from triage_local.apiserver.handlers import ResourceHandler
from triage_local.apiserver.resources import Catalogue
from triage_local.apiserver.routes import api_routes
from triage_local.apiserver.store import Store
from triage_local.apiserver.watching import BOOKMARK_SECONDS, Fault, Watches
from triage_local.apiserver.writing import WriteOptions, Writer

HOST: Final = "127.0.0.1"
INITIAL_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
MAX_BODY_BYTES: Final = 3 * 1024 * 1024
"""What a real API server reads of a request."""
_STOP_SECONDS: Final = 1.0


class ApiServer:
    """A Kubernetes API server in this process, without a scheduler and without a kubelet.

    ``async with ApiServer() as server`` serves at ``server.url`` until the block ends. A stopped server
    that is started again has kept its objects, and its port. ``port`` 0: a free one.
    """

    def __init__(self, *, port: int = 0, bookmark_seconds: float = BOOKMARK_SECONDS) -> None:
        self._port = port
        self._store = Store()
        self._watches = Watches(self._store)
        self._catalogue = Catalogue(builtin_resources())
        self._writer = Writer(self._store)
        self._resources = ResourceHandler(
            self._store, self._catalogue, self._writer, self._watches, bookmark_seconds=bookmark_seconds
        )
        self._controllers = Controllers(self._store, self._catalogue, self._writer)
        self.faults: Final = Faults(self._store, self._watches)
        self._runner: web.AppRunner | None = None
        self._beside: asyncio.Task[None] | None = None
        namespaces = self._catalogue.get("", "v1", "namespaces")
        assert namespaces is not None
        for name in INITIAL_NAMESPACES:
            self._writer.create(namespaces, "", {"metadata": {"name": name}}, WriteOptions())

    @property
    def url(self) -> str:
        """Where it serves; without a slash at the end. Only from the first start on."""
        return f"http://{HOST}:{self._port}"

    async def start(self) -> None:
        """Serve. OSError when the port is taken."""
        self._watches.begin_anew()
        application = web.Application(client_max_size=MAX_BODY_BYTES)
        application.add_routes(fault_routes(self.faults))
        application.add_routes(api_routes(self._catalogue, self._resources, self.faults))
        # A watch whose client is gone ends at once, not at its next event.
        runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=_STOP_SECONDS
        )
        await runner.setup()
        site = web.TCPSite(runner, HOST, self._port)
        try:
            await site.start()
        except OSError:
            await runner.cleanup()
            raise
        self._runner = runner
        self._port = runner.addresses[0][1]
        self._beside = asyncio.create_task(self._controllers.run(), name="apiserver-controllers")

    async def stop(self) -> None:
        """Serve no more. Open watches break off."""
        if self._beside is not None:
            self._beside.cancel()
            with suppress(asyncio.CancelledError):
                await self._beside
            self._beside = None
        for watch in self._watches:
            watch.push(Fault.CUT)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def write_kubeconfig(self, path: Path, *, namespace: str = "default") -> None:
        """Write a kubeconfig with which clients reach this server, and a namespace in it."""
        context = {"cluster": "local", "user": "local", "namespace": namespace}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": {"server": self.url}}],
            "users": [{"name": "local", "user": {"token": "any"}}],
            "contexts": [{"name": "local", "context": context}],
            "current-context": "local",
        }
        path.write_text(yaml.safe_dump(content))
