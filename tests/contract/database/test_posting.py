"""What was posted arrives, whatever becomes of the process that posted it."""

import asyncio
import sys
from typing import Any

import pytest

from support.databases import Database, a_run
from triage_contract.database.prepared import AT_ONCE
from triage_contract.exceptions import FencedError

INSERT = "INSERT INTO triage.issues (key, title, body) VALUES ($1, '', $2)"
COUNT = "SELECT count(*) AS count FROM triage.issues"
ARRIVED = "SELECT array_agg(key ORDER BY key) FROM triage.issues"

DYING = f"""
import asyncio, os, sys
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.url import DatabaseUrl

async def die():
    connection = PreparedConnection(DatabaseUrl.parse(sys.argv[1]), application="test")
    await connection.post({INSERT!r}, "1", "")
    await connection.post({INSERT!r}, "2", "x" * int(sys.argv[2]))
    os._exit(9)

asyncio.run(die())
"""


@pytest.mark.parametrize("size", [0, AT_ONCE, AT_ONCE + 1, 20_000_000])
async def test_a_process_that_dies_at_once_has_posted(database: Database, size: int) -> None:
    dying = await asyncio.create_subprocess_exec(sys.executable, "-c", DYING, database.url.dsn, str(size))
    assert await dying.wait() == 9
    while await database.values("SELECT 1 FROM pg_stat_activity WHERE application_name = 'test'"):
        await asyncio.sleep(0.01)
    assert await database.values(ARRIVED) == [(["1", "2"],)]


async def test_a_statement_is_prepared_for_as_long_as_the_connection_lasts(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    call_later, delays = loop.call_later, [0.0]

    def noting(delay: float, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        delays.append(delay)
        return call_later(delay, *args, **kwargs)

    monkeypatch.setattr(loop, "call_later", noting)
    connection = database.prepared()
    await connection.post(INSERT, "1", "")
    await connection.post(INSERT, "2", "")
    assert max(delays) < 300  # the driver's own


async def test_posts_of_many_tasks_arrive_in_their_order_and_none_is_forgotten(database: Database) -> None:
    connection = database.prepared()
    await connection.post(INSERT, "0", "")
    await asyncio.gather(*(connection.post(INSERT, str(number), "") for number in range(1, 50)))
    rows = await connection.fetch("SELECT key FROM triage.issues ORDER BY xmin::text::bigint")
    assert [row["key"] for row in rows] == [str(number) for number in range(50)]


async def test_an_error_of_one_of_many_posts_is_raised(database: Database) -> None:
    connection = database.prepared()
    opened = await database.open(a_run())
    doubt = "SELECT triage.doubt_call($1, $2, 'call', '')"
    await connection.post(doubt, opened.serial, opened.token)
    tokens = [opened.token, "forged", opened.token]
    posts = [connection.post(doubt, opened.serial, token) for token in tokens]
    outcomes = await asyncio.gather(*posts, connection.fetch(COUNT), return_exceptions=True)
    assert any(isinstance(outcome, FencedError) for outcome in outcomes)
