"""Fixtures of the runs by hand."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from support.command import Command, Ended
from support.databases import Database
from triage_contract.names import DocsEnv
from triage_local.model.server import ScriptedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """A person with a folder, a database and a model."""

    kind: Literal["postgres", "sqlite"]
    url: str
    environment: Mapping[str, str]
    folder: Path
    model: ScriptedModel

    def begin(self, *arguments: str, **environment: str) -> Command:
        """Type a command."""
        return Command(arguments, {**self.environment, **environment}, self.folder)

    async def run(self, *arguments: str, **environment: str) -> Ended:
        """Type a command, and wait for its end."""
        return await self.begin(*arguments, **environment).ended()

    async def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Look into the database."""
        url = self.url.replace("sqlite:", "sqlite+aiosqlite:").replace("postgresql:", "postgresql+asyncpg:")
        engine = create_async_engine(url)
        async with engine.connect() as connection:
            rows = [tuple(row) for row in await connection.execute(text(statement))]
        await engine.dispose()
        return rows

    async def issues(self) -> list[int]:
        """How often each issue was asked for again."""
        if self.kind == "postgres":
            rows = await self.rows("SELECT duplicates FROM triage.issues ORDER BY number")
            return [row[0] for row in rows]  # type: ignore[misc]
        from triage_agent.trackers.file import IssueFile

        path = self.folder / "issues.json"
        document = await asyncio.to_thread(path.read_text)
        return [issue.duplicates for issue in IssueFile.model_validate_json(document).issues]


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    """The docs-triage agent's scripted model, behind HTTP."""
    async with ScriptedModel() as model:
        yield model


@pytest.fixture(params=["postgres", "sqlite"])
def hand(request: pytest.FixtureRequest, tmp_path: Path, model: ScriptedModel) -> Hand:
    """Each test once on Postgres and once on SQLite."""
    if request.param == "postgres":
        database: Database = request.getfixturevalue("database")
        url = database.url.dsn
    else:
        url = f"sqlite:///{tmp_path}/triage.db"
    return Hand(
        kind=request.param,
        url=url,
        environment={
            DocsEnv.DB: url,
            DocsEnv.MODEL_BASE_URL: model.url,
            DocsEnv.MODEL_API_KEY: "no-key",
        },
        folder=tmp_path,
        model=model,
    )
