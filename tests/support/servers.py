"""The API server that tests run on: the emulator, or a real one where TRIAGE_TEST_KUBECONFIG names one."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from triage_local.apiserver import ApiServer
from triage_local.lone import LoneApiServer

REAL: Final = Path(os.environ["TRIAGE_TEST_KUBECONFIG"]) if "TRIAGE_TEST_KUBECONFIG" in os.environ else None
"""Kubeconfig of the real one, shared by all tests; None: tests run on the emulator."""

API_SERVER: Final = "emulated" if REAL is None else "real"
"""What ``triage-local --api-server`` is given, so that it has one of the same kind."""

HAS_CONTROLLERS: Final = REAL is None or "TRIAGE_TEST_CONTROLLERS" in os.environ
"""Whether what Kubernetes leaves to its controller manager is done."""


@asynccontextmanager
async def a_kubeconfig(folder: Path) -> AsyncIterator[Path]:
    """Give the kubeconfig of a server that is left as it was found; that of an emulator is made in a folder."""
    if REAL is not None:
        yield REAL
        return
    async with ApiServer() as server:
        server.write_kubeconfig(folder / "kubeconfig")
        yield folder / "kubeconfig"


def a_server() -> ApiServer | LoneApiServer:
    """Give a server of the same kind for one test alone, which may stop it."""
    return ApiServer() if REAL is None else LoneApiServer()


def emulator(server: ApiServer | LoneApiServer | None) -> ApiServer:
    """Give the emulator, for what no client can ask for; a test that runs on a real server is skipped."""
    if not isinstance(server, ApiServer):
        pytest.skip("makes faults, which the emulator has on demand and a real API server has not")
    return server
