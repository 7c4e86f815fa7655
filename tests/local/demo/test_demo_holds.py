"""Statements of a chosen run are held at their place, and let go or taken back."""

import asyncio

import pytest
from sqlalchemy.exc import DBAPIError

from support.databases import Database, a_run
from triage_contract.database.rows import RunRow, session_params
from triage_local.demo.holds import Place, holding, prepare

_FILE = "INSERT INTO triage.issues (key, title, body, run_id) VALUES (:key, 'title', 'body', :run_id)"
_BEGIN = (
    "INSERT INTO triage.tool_calls"
    " (app_name, user_id, session_id, call_id, invocation_id, tool, kind, args, state, epoch)"
    " VALUES (:app_name, :user_id, :session_id, :tool, 'inv', :tool, 'Idempotent', '{}', 'begun', 1)"
)
_WRITE = "UPDATE triage.tool_calls SET state = 'done' WHERE session_id = :session_id AND call_id = :tool"
_END = "UPDATE triage.tool_calls SET state = 'done', result = '{}' WHERE session_id = :session_id AND call_id = :tool"
_DONE = "SELECT count(*) FROM triage.tool_calls WHERE session_id = :session_id AND result IS NOT NULL"


async def file(database: Database, run: RunRow) -> None:
    await database.values(_FILE, key=f"{run.session.session_id}/call", run_id=run.id)


async def end_call(database: Database, run: RunRow, tool: str = "file_issue") -> None:
    await database.values(_BEGIN, tool=tool, **session_params(run.session))
    await database.values(_WRITE, tool=tool, session_id=run.session.session_id)
    await database.values(_END, tool=tool, session_id=run.session.session_id)


async def issues(database: Database) -> list[tuple[object, ...]]:
    return await database.values("SELECT key FROM triage.issues")


@pytest.fixture
async def held(database: Database) -> RunRow:
    """A run in a database that is ready for holds."""
    await prepare(database.engine)
    run = a_run()
    await database.open(run)
    return run


async def test_a_run_waits_in_its_tool_until_it_is_released(database: Database, held: RunRow) -> None:
    async with holding(database.engine, held.name, Place.IN_TOOL) as hold:
        filing = asyncio.create_task(file(database, held))
        await hold.reached()
        assert not filing.done()
        assert await issues(database) == []
        await hold.release()
        await filing
    assert len(await issues(database)) == 1


async def test_what_is_cut_off_never_happens(database: Database, held: RunRow) -> None:
    async with holding(database.engine, held.name, Place.AFTER_WRITE) as hold:
        ending = asyncio.create_task(end_call(database, held))
        await hold.reached()
        await hold.cut_off()
        with pytest.raises(DBAPIError):
            await ending
        assert await database.values(_DONE, session_id=held.session.session_id) == [(0,)]
        # The next attempt passes.
        await database.values(_END, tool="file_issue", session_id=held.session.session_id)
        assert await database.values(_DONE, session_id=held.session.session_id) == [(1,)]


async def test_other_runs_tools_and_places_pass(database: Database, held: RunRow) -> None:
    async with holding(database.engine, "another-run", Place.IN_TOOL):
        await file(database, held)
    async with holding(database.engine, held.name, Place.AFTER_WRITE):
        await end_call(database, held, tool="read_page")
    assert await database.values(_DONE, session_id=held.session.session_id) == [(1,)]


async def test_the_end_of_the_block_lets_a_run_go(database: Database, held: RunRow) -> None:
    async with holding(database.engine, held.name, Place.IN_TOOL) as hold:
        filing = asyncio.create_task(file(database, held))
        await hold.reached()
    await filing
    assert len(await issues(database)) == 1
