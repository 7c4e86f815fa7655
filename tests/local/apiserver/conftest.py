"""A cluster for each test, reached through clients only, so that the tests can run against a real one."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from kubernetes.aio import client, config

from triage_local.apiserver import ApiServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """What a kubectl call came to."""

    code: int
    out: str
    err: str


Kubectl = Callable[..., Awaitable[Completed]]


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """The server itself, for what no client can ask for: faults, and being stopped."""
    async with ApiServer() as server:
        yield server


@pytest.fixture
def kubeconfig(server: ApiServer, tmp_path: Path) -> Path:
    """A kubeconfig of the cluster under test."""
    path = tmp_path / "kubeconfig"
    server.write_kubeconfig(path)
    return path


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[client.ApiClient]:
    """The official asynchronous client."""
    settings = client.Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=settings)  # type: ignore[no-untyped-call]
    async with client.ApiClient(settings) as api:
        yield api


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    """Core resources through the asynchronous client."""
    return client.CoreV1Api(api)


@pytest.fixture
def customs(api: client.ApiClient) -> client.CustomObjectsApi:
    """Custom resources through the asynchronous client."""
    return client.CustomObjectsApi(api)


@pytest.fixture
def kubectl(kubeconfig: Path, tmp_path: Path) -> Kubectl:
    """A function that runs kubectl with arguments and standard input, for 30 seconds at most."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(tmp_path / "cache")}

    async def run(*arguments: str, stdin: str = "") -> Completed:
        process = await asyncio.create_subprocess_exec(
            program,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        async with asyncio.timeout(30):
            out, err = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Completed(code=process.returncode, out=out.decode(), err=err.decode())

    return run
