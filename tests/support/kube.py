"""An API server for the operator's tests, and the operator's own connection to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio.client import ApiClient, ApiextensionsV1Api, Configuration

from triage_local.apiserver import ApiServer
from triage_operator.kube import Kube
from triage_operator.settings import KubeSettings

CRDS = Path(__file__).parents[2] / "crds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A running API server with our resources."""

    server: ApiServer
    settings: KubeSettings

    def connect(self, **changes: Any) -> Any:
        """Open one more connection, with changed settings."""
        return Kube.connect(replace(self.settings, **changes))


@asynccontextmanager
async def a_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Run an API server in this process; its kubeconfig is in ``folder``."""
    kubeconfig = folder / "kubeconfig"
    async with ApiServer() as server:
        server.write_kubeconfig(kubeconfig)
        async with ApiClient(Configuration(host=server.url)) as client:
            for path in sorted(CRDS.glob("*.yaml")):
                await ApiextensionsV1Api(client).create_custom_resource_definition(
                    yaml.safe_load(path.read_text())
                )
        yield Cluster(server=server, settings=KubeSettings(kubeconfig=str(kubeconfig)))
