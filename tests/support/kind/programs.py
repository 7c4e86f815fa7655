"""Programs that a person would use on a cluster: kubectl, Helm's library, and Docker for the nodes."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from helm_python import Config

from support.charts import CHART, RELEASE
from support.docker import docker

SYSTEM: Final = "triage"
"""The namespace of the release."""

_PATIENCE_SECONDS: Final = 180


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What is run from outside, each to its end."""

    kubeconfig: Path

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl and give what it printed. AssertionError: it failed."""
        return await asyncio.to_thread(self._kubectl, arguments, stdin)

    def _kubectl(self, arguments: tuple[str, ...], stdin: str) -> str:
        program = shutil.which("kubectl")
        assert program is not None, "kubectl is not on the PATH"
        done = subprocess.run(
            [program, *arguments],
            input=stdin,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            text=True,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    async def apply(self, *manifests: Mapping[str, Any], namespace: str) -> None:
        """Apply manifests in a namespace."""
        await self.kubectl("apply", "--namespace", namespace, "-f", "-", stdin=yaml.safe_dump_all(manifests))

    async def rolled_out(self, *workloads: str, namespace: str = SYSTEM) -> None:
        """Wait until all pods of workloads are the newest ones, and ready."""
        for workload in workloads:
            await self.kubectl("rollout", "status", workload, "--namespace", namespace, "--timeout=170s")

    @asynccontextmanager
    async def cordoned(self, node: str) -> AsyncIterator[None]:
        """Let no new pod onto a node until the block ends."""
        await self.kubectl("cordon", node)
        try:
            yield
        finally:
            await self.kubectl("uncordon", node)

    async def drain(self, node: str) -> None:
        """Evict what is on a node, and wait until it is gone; the node stays cordoned."""
        await self.kubectl(
            "drain", node, "--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=150s"
        )

    async def helm(self, action: str, *arguments: Any, chart: Path = CHART, **options: Any) -> None:
        """Do something with the release; the chart and its name go before the arguments of an install or upgrade."""

        def work() -> None:
            charts = (chart,) if action in ("install", "upgrade") else ()
            with Config(kubeconfig_path=self.kubeconfig, namespace=SYSTEM) as helm:
                getattr(helm, action)(*charts, RELEASE, *arguments, **options)

        await asyncio.to_thread(work)

    async def docker(self, *arguments: str) -> str:
        """Run Docker's client and give what it printed. AssertionError: it failed."""
        ended = await asyncio.to_thread(docker, *arguments)
        assert ended.code == 0, f"docker {' '.join(arguments)}: {ended.said}"
        return ended.said

    async def kill(self, node: str, container: str, signal: str = "KILL") -> None:
        """Send a signal to the first process of a container, from its node."""
        await self.docker(
            "exec", node, "ctr", "-n", "k8s.io", "tasks", "kill", "-s", f"SIG{signal}", container
        )
