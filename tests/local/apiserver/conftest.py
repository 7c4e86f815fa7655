"""A cluster for each test, reached through clients only.

The same tests run on the emulator and on a real API server (see ``support.servers``).
"""

import asyncio
import os
import shutil
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubernetes.aio import client, config

from support.gadgets import Gadgets, gadget_definition
from support.kube import Rest, rest_client
from support.kubectl import Kubectl
from support.servers import HAS_CONTROLLERS, REAL
from triage_local.apiserver import ApiServer


@pytest.fixture
async def emulator() -> AsyncIterator[ApiServer]:
    """The emulator itself, for what no client can ask for."""
    if REAL:
        pytest.skip("is about what the emulator alone can: faults on demand, and the way to its kubelet")
    async with ApiServer(bookmark_seconds=0.2) as server:
        yield server


@pytest.fixture
def controllers() -> None:
    """A test that asks for this needs garbage collection and the namespace controller."""
    if not HAS_CONTROLLERS:
        pytest.skip("needs a controller manager beside the real API server: lone-apiserver --controllers")


@pytest.fixture
def kubeconfig(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A kubeconfig of the cluster under test."""
    if REAL:
        return REAL
    path = tmp_path / "kubeconfig"
    request.getfixturevalue("emulator").write_kubeconfig(path)
    return path


@pytest.fixture
async def rest(kubeconfig: Path) -> AsyncIterator[Rest]:
    """A plain HTTP client."""
    async with rest_client(kubeconfig) as rest:
        yield rest


@pytest.fixture
async def namespace(rest: Rest) -> str:
    """A namespace of the test's own."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    answer = await rest.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.code == 201
    return name


@pytest.fixture
async def pods(rest: Rest, namespace: str) -> AsyncIterator[str]:
    """Path of the pods of the test's namespace. They may be on the node ``n1``: on one that is not there, they go."""
    await rest.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
    path = f"/api/v1/namespaces/{namespace}/pods"
    yield path
    # A kubelet that comes later would run them.
    await rest.delete(path, gracePeriodSeconds=0)


@pytest.fixture
def config_maps(namespace: str) -> str:
    """Path of the config maps of the test's namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
async def gadgets(rest: Rest, namespace: str) -> AsyncIterator[Gadgets]:
    """A custom resource of the test's own, which is served."""
    gadgets = Gadgets(group=f"g{uuid.uuid4().hex[:10]}.example.dev", namespace=namespace)
    created = await rest.post(gadgets.definitions, gadget_definition(gadgets.group))
    assert created.code == 201, created.body
    async with asyncio.timeout(10):
        while (await rest.get(gadgets.path)).code != 200:
            await asyncio.sleep(0.05)
    yield gadgets
    await rest.delete(f"{gadgets.definitions}/gadgets.{gadgets.group}")


@pytest.fixture
async def aio_api(kubeconfig: Path) -> AsyncIterator[client.ApiClient]:
    """The official asynchronous client."""
    settings = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=settings)  # type: ignore[no-untyped-call]
    async with client.ApiClient(settings) as api:
        yield api


@pytest.fixture
def kubectl(kubeconfig: Path, namespace: str, tmp_path: Path) -> Kubectl:
    """The real kubectl."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(tmp_path / "cache")}
    return Kubectl(program=program, namespace=namespace, environment=environment)
