"""A whole cluster on this machine: API server, two nodes, Postgres, a model, and the real operator."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kubernetes.aio import client, config

from triage_contract.api.crds import AGENT, RUN, build_crd
from triage_contract.names import API_VERSION, DocsEnv
from triage_local.apiserver import ApiServer
from triage_local.exceptions import ProgramError
from triage_local.guard import Guard
from triage_local.kubelet import Image, ProcessKubelet, python_image
from triage_local.kubelet.cluster import Cluster
from triage_local.kubelet.exceptions import ClusterError
from triage_local.lone import LoneApiServer
from triage_local.model import ScriptedModel
from triage_local.objects import (
    DATABASE_SECRET,
    IMAGE,
    MODEL_SECRET,
    NAMESPACE,
    build_agent,
    build_namespace,
    build_secret,
)
from triage_local.operating import LocalOperator
from triage_local.postgres import PostgresServer
from triage_local.processes import Finished, run

Json = dict[str, Any]

DATABASE: Final = "triage"
SCRATCH_DATABASE: Final = "scratch"
SCRIPTED_MODEL: Final = "scripted"

# What the manifests in `examples/` name.
_EXAMPLE_IMAGE: Final = "registry.example/docs-triage:0.1.0"
_GEMINI_URL: Final = "GOOGLE_GEMINI_BASE_URL"
# By what a model of the outside world is reached: a proxy, its certificates, an endpoint of one's own.
_OUTSIDE: Final = (
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    _GEMINI_URL,
)
_SCRIPTED_KEY: Final = "none-needed"
_SERVED_SECONDS: Final = 30.0
# Before its paths are there, and while its storage is made.
_NOT_YET_SERVED: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.TOO_MANY_REQUESTS)
_LOOK_SECONDS: Final = 0.05

_COLLECTIONS: Final = {
    "Namespace": "/api/v1/namespaces",
    "Secret": f"/api/v1/namespaces/{NAMESPACE}/secrets",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "TriageAgent": f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/triageagents",
    "TriageRun": f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/triageruns",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemini:
    """A real model, in place of the scripted one."""

    name: str
    api_key: str = field(repr=False)


class LocalCluster:
    """``async with LocalCluster() as cluster`` runs it until the block ends; then nothing of it is left.

    Nothing is left either where this process is killed. The operator watches every namespace; what agents need
    is in the namespace ``docs``: the Secrets, and the TriageAgent ``default``.

    Once it has started, ``server``, ``kubelet``, ``model``, ``postgres`` and ``operator`` are its parts,
    ``api`` sends requests, ``folder`` is a folder that goes with it, and ``guard`` ends what else is started
    for it.
    """

    def __init__(
        self,
        *,
        kubeconfig: Path | None = None,
        gemini: Gemini | None = None,
        operator_log: Path | None = None,
        operator_settings: Mapping[str, str] | None = None,
        server: ApiServer | LoneApiServer | None = None,
    ) -> None:
        """Prepare, and start nothing.

        Args:
            kubeconfig: File to write for clients, removed at the end; None: one in the cluster's folder.
            gemini: The agents' model; None: a scripted one.
            operator_log: File for the operator's log, which stays; None: one in the cluster's folder.
            operator_settings: Variables of its environment, beside those that it needs to find the rest.
            server: The API server, not started; None: the emulator.
        """
        self._chosen_kubeconfig = kubeconfig
        self._chosen_log = operator_log
        self._operator_settings = operator_settings
        self._gemini = gemini
        self._resources = contextlib.AsyncExitStack()
        self.server = server or ApiServer()
        self.model = ScriptedModel()
        """Runs, and is asked nothing, where the agents have a real one."""

    async def start(self) -> None:
        """Start everything; returns when the operator is at work.

        Raises:
            LocalClusterError: A part of it did not start.
        """
        async with contextlib.AsyncExitStack() as resources:
            self.guard = resources.enter_context(Guard())
            self.folder = Path(tempfile.mkdtemp(prefix="triage-local-"))
            self.guard.watch_folder(self.folder)
            # One thread, so that a start that is given up half way is closed after its end.
            thread = resources.enter_context(ThreadPoolExecutor(1, thread_name_prefix="postgres"))
            postgres = self.postgres = PostgresServer(self.folder)
            resources.callback(thread.submit, postgres.close)
            loop = asyncio.get_running_loop()
            starting = loop.run_in_executor(thread, _start_postgres, postgres)
            await self._start_api(resources)
            self.database_url = await starting
            await self._migrate()
            # Copied now, since nobody may be connected to what is copied.
            copying = partial(postgres.create_database, SCRATCH_DATABASE, template=DATABASE)
            self.scratch_url = await loop.run_in_executor(thread, copying)
            await self._create_objects()
            self.operator = LocalOperator(
                database_url=self.database_url,
                kubeconfig=self.kubeconfig,
                log=self._chosen_log or self.folder / "operator.log",
                guard=self.guard,
                settings=self._operator_settings,
            )
            resources.push_async_callback(self.operator.stop)
            await self.operator.start()
            self._resources = resources.pop_all()

    async def close(self) -> None:
        """End all processes, and remove every file."""
        await self._resources.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def create(self, manifest: Json) -> Json:
        """Create an object, and give it as it is stored.

        Raises:
            ClusterError: It was refused.
        """
        return await self.api.request("POST", _COLLECTIONS[manifest["kind"]], manifest)

    async def run(self, *command: str, **environment: str) -> Finished:
        """Run a program of this Python environment to its end, or to that of the cluster.

        Raises:
            ProgramError: It is not installed.
        """
        return await run(*command, environment=environment, folder=self.folder, guard=self.guard)

    def model_environment(self) -> dict[str, str]:
        """What a process by hand needs to have the agents' model, its key included."""
        name, url = self._model()
        key = self._gemini.api_key if self._gemini else _SCRIPTED_KEY
        chosen = {
            DocsEnv.MODEL: name,
            DocsEnv.MODEL_API_KEY: key,
            **({DocsEnv.MODEL_BASE_URL: url} if url else {}),
        }
        outside = _outside() if self._gemini else {}
        return {**outside, **{str(variable): value for variable, value in chosen.items()}}

    async def _start_api(self, resources: contextlib.AsyncExitStack) -> None:
        await resources.enter_async_context(self.server)
        await resources.enter_async_context(self.model)
        self.kubeconfig = self._chosen_kubeconfig or self.folder / "kubeconfig"
        resources.callback(self.kubeconfig.unlink, missing_ok=True)
        self.server.write_kubeconfig(self.kubeconfig, namespace=NAMESPACE)
        configuration = client.Configuration()
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            str(self.kubeconfig), client_configuration=configuration, temp_file_path=str(self.folder)
        )
        self.api = Cluster(configuration)
        resources.push_async_callback(self.api.close)
        image = self._image()
        self.kubelet = ProcessKubelet(
            configuration, folder=self.folder / "kubelet", images={IMAGE: image, _EXAMPLE_IMAGE: image}
        )
        await resources.enter_async_context(self.kubelet)

    def _image(self) -> Image:
        """The docs-triage image: its Gemini is the scripted model, unless a real one was chosen."""
        image = python_image("triage")
        added = {_GEMINI_URL: self.model.url} if self._gemini is None else _outside()
        return replace(image, environment={**image.environment, **added})

    def _model(self) -> tuple[str, str | None]:
        """Name and endpoint of the agents' model; None: the provider's own endpoint."""
        return (SCRIPTED_MODEL, self.model.url) if self._gemini is None else (self._gemini.name, None)

    async def _migrate(self) -> None:
        migrated = await self.run(
            "triage-operator", "migrate", TRIAGE_OPERATOR_DATABASE_URL=self.database_url
        )
        if migrated.exit_code != 0:
            raise ProgramError(f"the database could not be migrated: {migrated.output}")

    async def _create_objects(self) -> None:
        for resource in (RUN, AGENT):
            await self.create(build_crd(resource))
        await self.create(build_namespace(NAMESPACE))
        await self.create(build_secret(DATABASE_SECRET, {"url": self.database_url}))
        api_key = self._gemini.api_key if self._gemini else _SCRIPTED_KEY
        await self.create(build_secret(MODEL_SECRET, {"api-key": api_key}))
        for kind in ("TriageRun", "TriageAgent"):
            await self._served(kind)
        self.agent = await self.create(build_agent(*self._model()))

    async def _served(self, kind: str) -> None:
        """Wait until a kind is served: a real API server takes a moment for a new definition, and tells nobody."""
        async with asyncio.timeout(_SERVED_SECONDS):
            while True:
                try:
                    await self.api.request("GET", _COLLECTIONS[kind])
                    return
                except ClusterError as error:
                    if error.status not in _NOT_YET_SERVED:
                        raise
                await asyncio.sleep(_LOOK_SECONDS)


def _outside() -> dict[str, str]:
    return {name: os.environ[name] for name in _OUTSIDE if name in os.environ}


def _start_postgres(postgres: PostgresServer) -> str:
    postgres.start()
    return postgres.create_database(DATABASE)
