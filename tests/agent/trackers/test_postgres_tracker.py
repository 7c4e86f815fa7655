"""The Postgres tracker: what it writes, and a database that comes and goes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import text

from support.cutting import Cut, cutting_proxy
from triage_agent.trackers.postgres import PostgresTracker
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUnreachableError, SchemaError
from triage_contract.states import Pooler
from triage_local.postgres import PostgresServer

RUN = UUID("6f1a3b9e-5d59-4a57-9f0e-3a4a9f0b3c11")


@pytest.fixture
async def database(postgres: PostgresServer) -> DatabaseUrl:
    url = DatabaseUrl.parse(postgres.create_database())
    await migrate(url)
    return url


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[PostgresServer]:
    with PostgresServer(tmp_path) as server:
        yield server


async def rows(url: DatabaseUrl) -> list[tuple[object, ...]]:
    engine = open_engine(url, application="test")
    async with engine.connect() as connection:
        found = await connection.execute(
            text("SELECT key, title, body, run_id, duplicates FROM triage.issues ORDER BY number")
        )
        result = [tuple(row) for row in found]
    await engine.dispose()
    return result


async def test_the_row_names_the_run_and_counts_duplicates(database: DatabaseUrl) -> None:
    tracker = PostgresTracker(database, run_id=RUN)
    for _ in range(3):
        await tracker.file("run-1/call-1", "Täglich läuft 🔑 ab", "Zeile 1\nZeile 2")

    assert await rows(database) == [("run-1/call-1", "Täglich läuft 🔑 ab", "Zeile 1\nZeile 2", RUN, 2)]


async def test_a_duplicate_leaves_no_gap_in_the_numbers(database: DatabaseUrl) -> None:
    tracker = PostgresTracker(database, run_id=RUN)
    numbers = [(await tracker.file(key, "Title", "Body")).number for key in ("a", "a", "b", "b", "c")]

    assert numbers == [1, 1, 2, 2, 3]


async def test_it_works_as_behind_a_transaction_pooler(database: DatabaseUrl) -> None:
    pooled = DatabaseUrl.parse(database.dsn, pooler=Pooler.TRANSACTION)
    tracker = PostgresTracker(pooled, run_id=None)
    first = await tracker.file("run-1/call-1", "Title", "Body")
    again = await tracker.file("run-1/call-1", "Title", "Body")

    assert (first.number, first.duplicate) == (again.number, False)
    assert again.duplicate


@pytest.mark.parametrize(("cut", "duplicate"), [(Cut.BEFORE_COMMIT, False), (Cut.AFTER_COMMIT, True)])
async def test_a_connection_that_breaks_around_the_commit_files_once(
    database: DatabaseUrl, cut: Cut, duplicate: bool
) -> None:
    async with cutting_proxy(database, cut) as proxy:
        filed = await PostgresTracker(proxy.url, run_id=RUN).file("run-1/call-1", "Title", "Body")

    assert proxy.has_cut
    assert filed.duplicate is duplicate
    assert await rows(database) == [("run-1/call-1", "Title", "Body", RUN, int(duplicate))]


async def test_a_database_that_is_away_for_a_while_is_waited_for(own_server: PostgresServer) -> None:
    url = DatabaseUrl.parse(own_server.create_database())
    await migrate(url)
    tracker = PostgresTracker(url, run_id=RUN)
    own_server.stop(immediate=True)

    filing = asyncio.create_task(tracker.file("run-1/call-1", "Title", "Body"))
    await asyncio.sleep(0)
    await asyncio.to_thread(own_server.start)
    filed = await filing

    assert not filed.duplicate
    assert len(await rows(url)) == 1


async def test_a_database_that_stays_away_is_named_without_its_password() -> None:
    url = DatabaseUrl.parse("postgresql://triage:hunter2@127.0.0.1:1/sessions")  # pragma: allowlist secret
    tracker = PostgresTracker(url, run_id=None, patience_seconds=0.2)

    with pytest.raises(DatabaseUnreachableError, match=r"127\.0\.0\.1:1/sessions") as raised:
        await tracker.file("run-1/call-1", "Title", "Body")
    assert "hunter2" not in str(raised.value)


async def test_a_database_without_our_schema_is_refused_at_once(postgres: PostgresServer) -> None:
    tracker = PostgresTracker(DatabaseUrl.parse(postgres.create_database()), run_id=None)

    with pytest.raises(SchemaError, match="triage-operator migrate"):
        await tracker.file("run-1/call-1", "Title", "Body")
