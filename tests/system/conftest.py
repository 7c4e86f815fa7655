"""One cluster for all system tests of a process, and a namespace of its own for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

pytest.register_assert_rewrite("support.sight", "support.workplace")

from support.site import Site  # noqa: E402
from support.system import System, a_system  # noqa: E402


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with a_system(tmp_path_factory.mktemp("system") / "operator.log") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def site(system: System) -> AsyncIterator[Site]:
    async with system.site() as made:
        yield made
