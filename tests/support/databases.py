"""Databases with our schema, a fresh one for each test, and runs in them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_agent.attempt.record import AttemptRecord
from triage_contract.database.engine import open_engine
from triage_contract.database.fence import NewAttempt, OpenedAttempt, close_fence, open_attempt
from triage_contract.database.migrating import migrate
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.rows import RunRow, SessionKey
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import RunState
from triage_local.postgres import PostgresServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database with our schema, and the operator's way to it."""

    url: DatabaseUrl
    engine: AsyncEngine
    opened: list[PreparedConnection] = field(default_factory=list)

    def prepared(self) -> PreparedConnection:
        """Give a connection such as an attempt has; it is closed with the database."""
        connection = PreparedConnection(self.url, application="test-attempt")
        self.opened.append(connection)
        return connection

    def record(self, attempt: OpenedAttempt) -> AttemptRecord:
        """Give the rows of an attempt as its process writes them."""
        return AttemptRecord(self.prepared(), serial=attempt.serial, token=attempt.token)

    async def open(self, run: RunRow, *, observed_epoch: int = 0) -> OpenedAttempt:
        """Open the run's next attempt as an operator does."""
        attempt = NewAttempt(pod="pod", image=None, memory_limit_bytes=None)
        return await open_attempt(self.engine, run, observed_epoch=observed_epoch, attempt=attempt)

    async def close(self, run: RunRow, epoch: int) -> bool:
        """Close the run's fence as an operator does at a loss."""
        return await close_fence(self.engine, run.session, epoch)

    async def values(self, statement: str, **params: object) -> list[tuple[object, ...]]:
        """Run a statement and give its rows."""
        async with self.engine.begin() as connection:
            result = await connection.execute(text(statement), params)
            return [tuple(row) for row in result] if result.returns_rows else []


@pytest.fixture(scope="session")
def template(postgres: PostgresServer) -> str:
    """A migrated database to copy."""
    url = DatabaseUrl.parse(postgres.create_database())
    asyncio.run(migrate(url))
    name = make_url(url.dsn).database
    assert name is not None
    return name


@pytest.fixture
async def database(postgres: PostgresServer, template: str) -> AsyncIterator[Database]:
    """A database of the test's own."""
    dsn = postgres.create_database(template=template)
    url = DatabaseUrl.parse(dsn)
    engine = open_engine(url, application="test-operator", pool_size=4)
    database = Database(url=url, engine=engine)
    yield database
    await engine.dispose()
    for connection in database.opened:
        await connection.close()
    name = make_url(dsn).database
    assert name is not None
    postgres.drop_database(name)


def a_run(report: str = "The tokens page is wrong.") -> RunRow:
    """A run that is not recorded yet."""
    run_id = uuid4()
    return RunRow(
        id=run_id,
        cluster_id="cluster",
        namespace="docs",
        name="tokens",
        agent="default",
        session=SessionKey(app_name="docs/default", user_id="triage", session_id=f"run-{run_id}"),
        invocation_id=f"inv-{run_id}",
        message={"parts": [{"text": report}]},
        root=None,
        state=RunState.ACTIVE,
        reason=None,
        created_at=None,
        ended_at=None,
    )
