"""A connection whose statements are prepared once, and may be posted."""

import asyncio

import pytest

from support.databases import Database, a_run
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUnreachableError, FencedError

INSERT = "INSERT INTO triage.issues (key, title, body) VALUES ($1, '', '')"
COUNT = "SELECT count(*) AS count FROM triage.issues"
END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def test_what_was_posted_is_there_for_the_next_statement(database: Database) -> None:
    connection = database.prepared()
    for number in range(20):
        await connection.post(INSERT, str(number))
        assert (await connection.fetch(COUNT))[0]["count"] == number + 1


async def test_what_was_posted_arrives_without_a_next_statement(database: Database) -> None:
    connection = database.prepared()
    await connection.post(INSERT, "prepared by this one")
    await connection.post(INSERT, "posted")
    await connection.close()
    assert await database.values("SELECT count(*) FROM triage.issues") == [(2,)]


async def test_an_error_of_what_was_posted_is_raised_once_by_the_next(database: Database) -> None:
    connection = database.prepared()
    run = a_run()
    opened = await database.open(run)
    doubt = "SELECT triage.doubt_call($1, $2, 'call', 'It broke.')"
    await connection.post(doubt, opened.serial, opened.token)
    await connection.post(doubt, opened.serial, "forged")
    with pytest.raises(FencedError):
        await connection.fetch(COUNT)
    assert (await connection.fetch(COUNT))[0]["count"] == 0


async def test_statements_of_several_tasks_do_not_meet(database: Database) -> None:
    connection = database.prepared()
    posts = (connection.post(INSERT, str(number)) for number in range(20))
    await asyncio.gather(*posts, *(connection.fetch(COUNT) for _ in range(20)))
    assert (await connection.fetch(COUNT))[0]["count"] == 20


async def test_a_connection_that_was_lost_meanwhile_comes_back(database: Database) -> None:
    connection = database.prepared()
    await connection.post(INSERT, "before")
    await database.values(END_OTHERS)
    async with asyncio.timeout(10):
        while True:  # the end of a connection is told to the event loop, which may not have heard it yet
            try:
                await connection.post(INSERT, "after")
                await connection.fetch(COUNT)
                break
            except DatabaseUnreachableError:
                continue
    assert await database.values("SELECT count(*) FROM triage.issues") == [(2,)]


async def test_a_statement_that_is_cancelled_leaves_the_connection_usable(database: Database) -> None:
    connection = database.prepared()
    sleeping = asyncio.create_task(connection.fetch("SELECT pg_sleep(60)"))
    while not await database.values("SELECT 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"):
        await asyncio.sleep(0.01)
    sleeping.cancel()
    await asyncio.wait((sleeping,))
    assert (await connection.fetch(COUNT))[0]["count"] == 0


async def test_nobody_there_is_unreachable(database: Database) -> None:
    connection = PreparedConnection(DatabaseUrl.parse("postgresql://u@127.0.0.1:1/db"), application="test")
    with pytest.raises(DatabaseUnreachableError):
        await connection.fetch(COUNT)
