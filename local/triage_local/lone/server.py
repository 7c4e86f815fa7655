"""The server: etcd, kube-apiserver and, if wanted, the controllers, as processes on loopback ports."""

import base64
import contextlib
import json
import secrets
import ssl
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import aiohttp

from triage_local.exceptions import ProgramError
from triage_local.guard import Guard
from triage_local.keys import make_key
from triage_local.ports import HOST, free_port
from triage_local.processes import Process, find

PROGRAMS: Final = ("etcd", "kube-apiserver")
CONTROLLERS: Final = "kube-controller-manager"

_START_SECONDS: Final = 60.0


class LoneApiServer:
    """A Kubernetes API server in processes of its own, without a scheduler and without a kubelet.

    ``async with LoneApiServer() as server`` serves at ``server.url`` after about two seconds, until the block ends;
    nothing of it is left then, nor where this process is killed. A stopped server that is started again has kept its
    objects, its port and its credentials. Who shows the token in its kubeconfig may do everything; others have what
    RBAC gives them.
    """

    def __init__(self, *, controllers: bool = True) -> None:
        """Prepare, and start nothing.

        Args:
            controllers: Also what Kubernetes leaves to its controller manager: garbage collection, emptying of
                namespaces, eviction from lost nodes.
        """
        self._controllers = controllers
        self._port = free_port()
        self._token = secrets.token_urlsafe(24)
        self._resources = contextlib.AsyncExitStack()
        self._serving: Process | None = None

    @property
    def url(self) -> str:
        """Where it serves; without a slash at the end."""
        return f"https://{HOST}:{self._port}"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that goes with the server, once that has started."""
        return self._folder / "kubeconfig"

    async def __aenter__(self) -> Self:
        """Start all of it.

        Raises:
            ProgramError: A program is not installed, or ended.
            PatienceError: It does not get ready.
        """
        async with contextlib.AsyncExitStack() as resources:
            for program in (*PROGRAMS, *([CONTROLLERS] if self._controllers else [])):
                find(program)
            self._guard = resources.enter_context(Guard())
            self._folder = Path(tempfile.mkdtemp(prefix="lone-apiserver-"))
            self._guard.watch_folder(self._folder)
            tokens = self._folder / "tokens.csv"
            tokens.touch(mode=0o600)
            tokens.write_text(f"{self._token},admin,admin,system:masters\n")
            await make_key(self._key, self._guard)
            etcd = await self._run_etcd()
            resources.push_async_callback(etcd.kill)
            resources.push_async_callback(self.stop)
            await self.start()
            self.write_kubeconfig(self.kubeconfig)
            if self._controllers:
                controllers = await self._run_controllers()
                resources.push_async_callback(controllers.kill)
            self._resources = resources.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._resources.aclose()

    async def start(self) -> None:
        """Serve, and return once it is ready. See ``__aenter__`` for what goes wrong."""
        process = self._serving = await self._run_server()
        await process.until_ready(self._is_ready, _START_SECONDS)

    async def stop(self) -> None:
        """Serve no more. Open watches break off."""
        if self._serving is not None:
            process, self._serving = self._serving, None
            await process.kill()

    async def forget(self, version: int) -> None:
        """Let etcd forget all before a version, as it does every five minutes.

        Raises:
            ProgramError: It does not.
        """
        compaction = f"{self._etcd_url}/v3/kv/compaction"
        async with (
            aiohttp.ClientSession() as session,
            session.post(compaction, json={"revision": version}) as answer,
        ):
            if not answer.ok:
                raise ProgramError(f"etcd forgets nothing: {await answer.text()}")

    def write_kubeconfig(self, path: Path, *, namespace: str = "default") -> None:
        """Write a kubeconfig with which clients reach this server, and a namespace in it. It holds a secret."""
        cluster = {
            "server": self.url,
            "certificate-authority-data": base64.b64encode(self._certificate.read_bytes()).decode(),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lone", "cluster": cluster}],
            "users": [{"name": "lone", "user": {"token": self._token}}],
            "contexts": [
                {"name": "lone", "context": {"cluster": "lone", "user": "lone", "namespace": namespace}}
            ],
            "current-context": "lone",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))

    @property
    def _key(self) -> Path:
        return self._folder / "service-account.key"

    @property
    def _certificate(self) -> Path:
        """Made by kube-apiserver itself, at its first start."""
        return self._folder / "certificates" / "apiserver.crt"

    async def _run_etcd(self) -> Process:
        url, peer_url = (f"http://{HOST}:{free_port()}" for _ in range(2))
        self._etcd_url = url
        return await self._run(
            "etcd",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            # Nothing here has to outlive the machine.
            "--unsafe-no-fsync",
        )

    async def _run_server(self) -> Process:
        return await self._run(
            "kube-apiserver",
            f"--etcd-servers={self._etcd_url}",
            f"--bind-address={HOST}",
            f"--advertise-address={HOST}",
            # An address of loopback is refused as an endpoint of the service `kubernetes`, which nobody calls.
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._port}",
            f"--cert-dir={self._certificate.parent}",
            f"--token-auth-file={self._folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={self._key}",
            f"--service-account-signing-key-file={self._key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            # The names of nodes are known to nobody.
            "--kubelet-preferred-address-types=InternalIP",
            # Pods need no account where no controller makes one for each namespace.
            "--disable-admission-plugins=ServiceAccount",
        )

    async def _run_controllers(self) -> Process:
        return await self._run(
            CONTROLLERS,
            f"--kubeconfig={self.kubeconfig}",
            f"--service-account-private-key-file={self._key}",
            f"--root-ca-file={self._certificate}",
            "--leader-elect=false",
            "--secure-port=0",
        )

    async def _run(self, program: str, *arguments: str) -> Process:
        log = self._folder / f"{program}.log"
        return await Process.start(program, *arguments, environment={}, log=log, guard=self._guard)

    async def _is_ready(self) -> bool:
        try:
            context = ssl.create_default_context(cafile=self._certificate)
            async with (
                aiohttp.ClientSession(self.url) as session,
                session.get("/readyz", ssl=context) as answer,
            ):
                return answer.ok
        # No certificate yet, half of one, or nobody who listens.
        except (OSError, aiohttp.ClientError):
            return False
