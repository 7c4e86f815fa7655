"""Fixtures of the operator's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.databases import Database, database, template
from support.operated import Cluster, a_cluster
from support.stub_agent import StubAgents

__all__ = ["Database", "database", "template"]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    """An API server with our resources, and nothing that runs pods."""
    async with a_cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
async def agents(cluster: Cluster, database: Database) -> AsyncIterator[StubAgents]:
    """The agent processes of the test."""
    agents = StubAgents(cluster, database)
    yield agents
    await agents.close()
