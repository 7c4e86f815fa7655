"""Only the current attempt can write or begin anything."""

import asyncio
import json

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from support.databases import Database, a_run
from triage_agent.attempt.record import AttemptRecord
from triage_contract.database.engine import driver_error, open_engine
from triage_contract.database.reading import read_attempts, read_fence, read_run
from triage_contract.database.rows import RunRow
from triage_contract.exceptions import (
    AlreadyClaimedError,
    CallRunningError,
    EpochMovedError,
    FencedError,
    SessionBusyError,
)
from triage_contract.names import FENCED_SQLSTATE
from triage_contract.states import CallState, Outcome, ToolKind

INSERT_SESSION = text(
    "INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)"
    " VALUES (:app_name, :user_id, :session_id, '{}', now(), now())"
)
INSERT_EVENT = text(
    "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
    " VALUES (:id, :app_name, :user_id, :session_id, :invocation_id, now(), CAST(:data AS jsonb))"
)


async def insert_session(engine: AsyncEngine, run: RunRow) -> None:
    async with engine.begin() as connection:
        await connection.execute(INSERT_SESSION, session_of(run))


async def insert_event(engine: AsyncEngine, run: RunRow, event_id: str, **data: object) -> None:
    params = {
        **session_of(run),
        "id": event_id,
        "invocation_id": run.invocation_id,
        "data": json.dumps({"author": "agent", **data}),
    }
    async with engine.begin() as connection:
        await connection.execute(INSERT_EVENT, params)


def session_of(run: RunRow) -> dict[str, str]:
    key = run.session
    return {"app_name": key.app_name, "user_id": key.user_id, "session_id": key.session_id}


def sqlstate(error: DBAPIError) -> str:
    return str(getattr(driver_error(error), "sqlstate", None))


async def test_the_first_attempt_of_a_run_records_run_fence_and_attempt_together(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    async with database.engine.connect() as connection:
        row = await read_run(connection, run.id)
        attempts = await read_attempts(connection, run.id)
        fence = await read_fence(connection, run.session)
    assert row is not None
    assert row.message == run.message
    assert [(a.epoch, a.serial) for a in attempts] == [(1, opened.serial)]
    assert fence is not None
    assert (fence.epoch, fence.token) == (1, opened.token)


async def test_tokens_and_dsns_do_not_show_in_reprs(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    async with database.engine.connect() as connection:
        fence = await read_fence(connection, run.session)
    shown = f"{opened!r} {fence!r} {database.url!r} {database.url}"
    assert opened.token not in shown
    assert database.url.dsn not in shown


async def test_an_open_fence_does_not_move(database: Database) -> None:
    run = a_run()
    await database.open(run)
    with pytest.raises(EpochMovedError):
        await database.open(run, observed_epoch=1)


async def test_a_fence_moves_from_the_observed_epoch_only(database: Database) -> None:
    run = a_run()
    await database.open(run)
    assert await database.close(run, 1)
    assert (await database.open(run, observed_epoch=1)).epoch == 2
    for stale in (0, 1, 7):
        with pytest.raises(EpochMovedError):
            await database.open(run, observed_epoch=stale)
    assert len(await database.values("SELECT 1 FROM triage.attempts")) == 2


async def test_of_many_that_open_the_same_epoch_at_once_one_wins(database: Database) -> None:
    run = a_run()
    await database.open(run)
    await database.close(run, 1)
    results = await asyncio.gather(
        *(database.open(run, observed_epoch=1) for _ in range(8)), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in results) == ["EpochMovedError"] * 7 + ["OpenedAttempt"]


async def test_a_closed_epoch_cannot_be_closed_again_nor_an_older_one(database: Database) -> None:
    run = a_run()
    await database.open(run)
    assert await database.close(run, 1)
    assert not await database.close(run, 1)
    await database.open(run, observed_epoch=1)
    assert not await database.close(run, 1)


async def test_a_session_has_one_active_run(database: Database) -> None:
    first, second = a_run(), a_run()
    await database.open(first)
    await database.close(first, 1)
    other = RunRow(**{**{f: getattr(second, f) for f in second.__slots__}, "session": first.session})
    with pytest.raises(SessionBusyError):
        await database.open(other, observed_epoch=1)


@pytest.mark.parametrize("token", [None, "", "forged"])
async def test_events_and_sessions_of_a_run_refuse_a_connection_without_the_current_token(
    database: Database, token: str | None
) -> None:
    run = a_run()
    opened = await database.open(run)
    owner = open_engine(database.url, application="test", token=opened.token)
    other = open_engine(database.url, application="test", token=token)
    await insert_session(owner, run)
    await insert_event(owner, run, "e1")
    with pytest.raises(DBAPIError) as refused:
        await insert_event(other, run, "e2")
    assert sqlstate(refused.value) == FENCED_SQLSTATE
    for statement in ("UPDATE events SET event_data = '{}'", "DELETE FROM events", "DELETE FROM sessions"):
        with pytest.raises(DBAPIError):
            async with other.begin() as connection:
                await connection.execute(text(statement))
    await owner.dispose()
    await other.dispose()


async def test_a_null_token_refuses_everybody(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    await database.close(run, opened.epoch)
    for token in (None, "", opened.token):
        engine = open_engine(database.url, application="test", token=token)
        with pytest.raises(DBAPIError) as refused:
            await insert_session(engine, run)
        assert sqlstate(refused.value) == FENCED_SQLSTATE
        await engine.dispose()


async def test_the_token_of_another_run_is_refused(database: Database) -> None:
    run, other = a_run(), a_run()
    opened, others = await database.open(run), await database.open(other)
    engine = open_engine(database.url, application="test", token=others.token)
    with pytest.raises(DBAPIError):
        await insert_session(engine, run)
    await engine.dispose()
    forged = AttemptRecord(database.prepared(), serial=opened.serial, token=others.token)
    with pytest.raises(FencedError):
        await forged.claim()


async def test_an_event_does_not_move_out_of_its_session(database: Database) -> None:
    run, free = a_run(), a_run()
    opened = await database.open(run)
    owner = open_engine(database.url, application="test", token=opened.token)
    await insert_session(owner, run)
    await insert_event(owner, run, "e1")
    await insert_session(database.engine, free)
    with pytest.raises(DBAPIError) as refused:
        await database.values(
            "UPDATE events SET session_id = :free WHERE id = 'e1'", free=free.session.session_id
        )
    assert sqlstate(refused.value) == FENCED_SQLSTATE
    await owner.dispose()


async def test_a_session_that_no_run_touched_is_free(database: Database) -> None:
    run = a_run()
    await insert_session(database.engine, run)
    await insert_event(database.engine, run, "e1")


async def test_an_attempt_is_claimed_once(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    record = database.record(opened)
    assert (await record.claim()).id == run.id
    with pytest.raises(AlreadyClaimedError):
        await record.claim()


async def test_after_the_fence_moved_the_old_attempt_writes_nothing(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    record = database.record(opened)
    await record.claim()
    await record.begin_call(
        "c1", tool="file_issue", kind=ToolKind.IDEMPOTENT, args={}, function_call_id="call-1", may_repeat=True
    )
    await database.close(run, opened.epoch)
    ended = {"state": CallState.DONE, "result": {}, "actions": {}, "is_duplicate": False}
    for write in (
        record.begin_call(
            "c2",
            tool="file_issue",
            kind=ToolKind.IDEMPOTENT,
            args={},
            function_call_id="call-1",
            may_repeat=True,
        ),
        record.end_call("c1", **ended),  # type: ignore[arg-type]
        record.record_root({}),
        record.release(),
        record.finish(Outcome.FINISHED),
        record.replies(),
    ):
        with pytest.raises(FencedError):
            await write
    assert await database.values("SELECT call_id, state FROM triage.tool_calls") == [("c1", "begun")]


async def test_a_done_call_is_answered_and_counted_and_a_begun_one_begins_again(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    first = database.record(opened)
    for call in ("c1", "c2"):
        assert (
            await first.begin_call(
                call,
                tool="t",
                kind=ToolKind.IDEMPOTENT,
                args={"a": 1},
                function_call_id="call-1",
                may_repeat=True,
            )
        ).is_begun
    actions = {"state_delta": {"x": 1}}
    await first.end_call(
        "c1", state=CallState.DONE, result={"number": 1}, actions=actions, is_duplicate=False
    )
    await database.close(run, 1)
    opened = await database.open(run, observed_epoch=1)
    second = database.record(opened)
    answered = await second.begin_call(
        "c1", tool="t", kind=ToolKind.IDEMPOTENT, args={}, function_call_id="call-1", may_repeat=True
    )
    assert (answered.is_begun, answered.result, answered.actions) == (False, {"number": 1}, actions)
    assert (
        await second.begin_call(
            "c2", tool="t", kind=ToolKind.IDEMPOTENT, args={}, function_call_id="call-1", may_repeat=True
        )
    ).is_begun
    await second.end_call("c2", state=CallState.DONE, result={}, actions={}, is_duplicate=True)
    totals = await database.values(
        "SELECT labels ->> 'where', value FROM triage.totals WHERE name = 'duplicates_suppressed' ORDER BY 1"
    )
    assert totals == [("journal", 1.0), ("tracker", 1.0)]


async def test_release_is_refused_while_a_call_runs_and_tells_the_operator_after(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    record = database.record(opened)
    await record.begin_call(
        "c1", tool="t", kind=ToolKind.IDEMPOTENT, args={}, function_call_id="call-1", may_repeat=True
    )
    with pytest.raises(CallRunningError):
        await record.release()
    await record.end_call("c1", state=CallState.DONE, result={}, actions={}, is_duplicate=False)
    await record.release()
    async with database.engine.connect() as connection:
        (attempt,) = await read_attempts(connection, run.id)
        fence = await read_fence(connection, run.session)
    assert attempt.outcome is Outcome.HANDED_OFF
    assert attempt.released_at is not None
    assert fence is not None
    assert fence.token is None


async def test_release_waits_for_a_call_that_is_about_to_begin_and_is_refused_then(
    database: Database,
) -> None:
    run = a_run()
    opened = await database.open(run)
    record = database.record(opened)
    waiting = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    async with database.engine.connect() as connection:
        await connection.execute(
            text("SELECT triage.begin_call(:serial, :token, 'c1', 't', 'Idempotent', '{}')"),
            {"serial": opened.serial, "token": opened.token},
        )
        releasing = asyncio.create_task(record.release())
        while not await database.values(waiting):
            await asyncio.sleep(0.01)
        await connection.commit()
    with pytest.raises(CallRunningError):
        await releasing
    async with database.engine.connect() as connection:
        fence = await read_fence(connection, run.session)
    assert fence is not None
    assert fence.token == opened.token


async def test_the_error_of_a_statement_does_not_show_its_parameters(database: Database) -> None:
    async with database.engine.connect() as connection:
        with pytest.raises(DBAPIError) as raised:
            await connection.execute(text("SELECT 1 / 0, CAST(:token AS text)"), {"token": "hidden-word"})
    assert "division by zero" in str(raised.value)
    assert "hidden-word" not in str(raised.value)


async def test_only_new_events_that_are_no_errors_count_as_progress(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    engine = open_engine(database.url, application="test", token=opened.token)
    await insert_session(engine, run)
    await insert_event(engine, run, "e1", author="user")
    await insert_event(engine, run, "e2", error_code="429")
    await insert_event(engine, run, "e3", custom_metadata={"triage_replayed": True})
    async with database.engine.connect() as connection:
        (attempt,) = await read_attempts(connection, run.id)
    assert not attempt.progressed
    assert attempt.first_write_at is not None
    await insert_event(engine, run, "e4", custom_metadata={"other": 1})
    async with database.engine.connect() as connection:
        (attempt,) = await read_attempts(connection, run.id)
    assert (attempt.events, attempt.progressed) == (1, True)
    await engine.dispose()


async def test_a_backend_frozen_on_the_fence_row_is_ended(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    frozen = open_engine(database.url, application=f"triage-agent/{opened.serial}", token=opened.token)
    await insert_session(frozen, run)
    connection = await frozen.connect()
    await connection.execute(text("SELECT triage.current_attempt(:serial, :token)"), {
        "serial": opened.serial, "token": opened.token
    })  # fmt: skip
    async with asyncio.timeout(5):
        assert await database.close(run, opened.epoch)
    with pytest.raises(DBAPIError):
        await connection.execute(text("SELECT 1"))
    await connection.invalidate()
    await connection.close()
    await frozen.dispose()


async def test_a_backend_frozen_in_an_append_does_not_block_the_successor(database: Database) -> None:
    run = a_run()
    opened = await database.open(run)
    frozen = open_engine(database.url, application=f"triage-agent/{opened.serial}", token=opened.token)
    await insert_session(frozen, run)
    connection = await frozen.connect()
    await connection.execute(text("SELECT * FROM sessions FOR UPDATE"))
    await database.close(run, opened.epoch)
    opened = await database.open(run, observed_epoch=1)
    successor = open_engine(database.url, application="test", token=opened.token)
    async with asyncio.timeout(5):
        async with successor.begin() as writing:
            await writing.execute(text("SELECT * FROM sessions FOR UPDATE"))
        await insert_event(successor, run, "e1")
    await connection.invalidate()
    await connection.close()
    await frozen.dispose()
    await successor.dispose()
