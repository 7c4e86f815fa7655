"""Fixtures of the attempts' tests."""

from collections.abc import AsyncIterator

import pytest

from support.databases import Database
from support.killing import Agent
from support.stage import stage
from triage_local.model.server import ScriptedModel

__all__ = ["agent", "model", "stage"]


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    """The docs-triage agent's scripted model, behind HTTP."""
    async with ScriptedModel() as model:
        yield model


@pytest.fixture
def agent(database: Database, model: ScriptedModel) -> Agent:
    """Processes of the docs-triage agent."""
    return Agent(database=database, model_url=model.url)
