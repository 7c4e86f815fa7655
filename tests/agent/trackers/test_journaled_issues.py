"""The Postgres tracker inside a journaled call: the issue and the call's end are one transaction."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from sqlalchemy.exc import DBAPIError

from support.cutting import Cut, cutting_proxy
from support.databases import Database, a_run
from triage_agent.attempt.record import AttemptRecord
from triage_agent.current import CURRENT_ATTEMPT, CurrentAttempt
from triage_agent.replay.gate import INSIDE_CALL
from triage_agent.trackers.postgres import PostgresTracker
from triage_contract.database.rows import RunRow
from triage_contract.exceptions import DatabaseUnreachableError, FencedError
from triage_contract.states import CallState, ToolKind

CALL = "adk-0123456789abcdef01234567-0"
KEY = f"run-1/{CALL}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt, and what its tools see of it."""

    record: AttemptRecord
    current: CurrentAttempt
    epoch: int

    async def begin(self, call_id: str = CALL) -> bool:
        """Begin the call as the plugin does, and give whether it is to run."""
        begun = await self.record.begin_call(
            call_id,
            tool="file_issue",
            kind=ToolKind.IDEMPOTENT,
            args={},
            function_call_id=call_id,
            may_repeat=True,
        )
        return begun.is_begun

    @contextmanager
    def inside(self, call_id: str = CALL) -> Iterator[None]:
        """Be inside the call."""
        attempt, call = CURRENT_ATTEMPT.set(self.current), INSIDE_CALL.set(call_id)
        try:
            yield
        finally:
            CURRENT_ATTEMPT.reset(attempt)
            INSIDE_CALL.reset(call)


async def an_attempt(database: Database, run: RunRow, *, observed_epoch: int = 0) -> Attempt:
    if observed_epoch:
        await database.close(run, observed_epoch)
    opened = await database.open(run, observed_epoch=observed_epoch)
    record = database.record(opened)
    return Attempt(
        record=record,
        current=CurrentAttempt(serial=opened.serial, token=opened.token),
        epoch=opened.epoch,
    )


def a_tracker(database: Database) -> PostgresTracker:
    return PostgresTracker(database.url, run_id=None, patience_seconds=0.0)


async def issues(database: Database) -> list[tuple[object, ...]]:
    return await database.values("SELECT key, run_id, duplicates FROM triage.issues ORDER BY number")


async def calls(database: Database) -> list[tuple[object, ...]]:
    return await database.values("SELECT state, result, begun_times FROM triage.tool_calls ORDER BY begun_at")


async def test_the_call_is_done_once_the_issue_is_filed(database: Database) -> None:
    run = a_run()
    attempt = await an_attempt(database, run)
    assert await attempt.begin()
    with attempt.inside():
        filed = await a_tracker(database).file(KEY, "Title", "Body")

    assert (filed.number, filed.duplicate) == (1, False)
    assert await issues(database) == [(KEY, run.id, 0)]
    assert await calls(database) == [("done", {"number": 1}, 1)]
    assert await database.values("SELECT calls_done FROM triage.attempts") == [(1,)]


async def test_its_end_as_the_plugin_journals_it_makes_it_complete(database: Database) -> None:
    attempt = await an_attempt(database, a_run())
    await attempt.begin()
    with attempt.inside():
        await a_tracker(database).file(KEY, "Title", "Body")
    await attempt.record.end_call(
        CALL,
        state=CallState.DONE,
        result={"number": 1, "seen": True},
        actions={"state_delta": {"issue": 1}},
        is_duplicate=False,
    )

    assert await database.values("SELECT result, actions FROM triage.tool_calls") == [
        ({"number": 1, "seen": True}, {"state_delta": {"issue": 1}})
    ]
    assert await database.values("SELECT calls_done FROM triage.attempts") == [(1,)]


async def test_the_next_attempt_is_answered_by_the_journal(database: Database) -> None:
    run = a_run()
    first = await an_attempt(database, run)
    await first.begin()
    with first.inside():
        await a_tracker(database).file(KEY, "Title", "Body")

    second = await an_attempt(database, run, observed_epoch=first.epoch)
    assert not await second.begin()
    assert await issues(database) == [(KEY, run.id, 0)]


async def test_a_call_that_was_lost_before_the_write_files_at_its_repeat(database: Database) -> None:
    run = a_run()
    first = await an_attempt(database, run)
    await first.begin()
    second = await an_attempt(database, run, observed_epoch=first.epoch)
    assert await second.begin()
    with second.inside():
        filed = await a_tracker(database).file(KEY, "Title", "Body")

    assert (filed.number, filed.duplicate) == (1, False)
    assert await calls(database) == [("done", {"number": 1}, 2)]


async def test_a_key_that_was_filed_without_the_journal_is_a_duplicate(database: Database) -> None:
    """As an agent of the release before did."""
    attempt = await an_attempt(database, a_run())
    await a_tracker(database).file(KEY, "Title", "Body")
    await attempt.begin()
    with attempt.inside():
        filed = await a_tracker(database).file(KEY, "Title", "Body")

    assert (filed.number, filed.duplicate) == (1, True)
    assert await calls(database) == [("done", {"number": 1, "duplicate_request": True}, 1)]


async def test_a_fenced_attempt_files_nothing(database: Database) -> None:
    run = a_run()
    stale = await an_attempt(database, run)
    await stale.begin()
    await an_attempt(database, run, observed_epoch=stale.epoch)
    with stale.inside(), pytest.raises(FencedError):
        await a_tracker(database).file(KEY, "Title", "Body")

    assert await issues(database) == []


async def test_a_call_that_the_attempt_did_not_begin_files_nothing(database: Database) -> None:
    run = a_run()
    first = await an_attempt(database, run)
    await first.begin()
    second = await an_attempt(database, run, observed_epoch=first.epoch)
    with second.inside(), pytest.raises(FencedError, match="was not begun by attempt"):
        await a_tracker(database).file(KEY, "Title", "Body")

    assert await issues(database) == []


async def test_the_key_of_another_session_is_refused_and_left_as_it_is(database: Database) -> None:
    owner, thief = await an_attempt(database, a_run()), await an_attempt(database, a_run())
    await owner.begin()
    await thief.begin()
    with owner.inside():
        await a_tracker(database).file(KEY, "Title", "Body")
    before = await issues(database)
    with thief.inside(), pytest.raises(DBAPIError, match="the key belongs to another session"):
        await a_tracker(database).file(KEY, "Title", "Body")

    assert await issues(database) == before


@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT])
async def test_a_connection_that_breaks_around_the_commit_files_once(database: Database, cut: Cut) -> None:
    run = a_run()
    attempt = await an_attempt(database, run)
    await attempt.begin()
    async with cutting_proxy(database.url, cut) as proxy:
        with attempt.inside():
            tracker = PostgresTracker(proxy.url, run_id=None)
            filed = await tracker.file(KEY, "Title", "Body")

    assert proxy.has_cut
    assert not filed.duplicate
    assert await issues(database) == [(KEY, run.id, 0)]
    assert await database.values("SELECT number FROM triage.issues") == [(filed.number,)]
    assert await calls(database) == [("done", {"number": filed.number}, 1)]


@pytest.mark.parametrize(("cut", "filed"), [(Cut.BEFORE_COMMIT, 0), (Cut.AFTER_COMMIT, 1)])
async def test_whoever_gives_up_then_has_both_or_neither(database: Database, cut: Cut, filed: int) -> None:
    run = a_run()
    first = await an_attempt(database, run)
    await first.begin()
    async with cutting_proxy(database.url, cut) as proxy:
        with first.inside(), pytest.raises(DatabaseUnreachableError):
            await PostgresTracker(proxy.url, run_id=None, patience_seconds=0.0).file(KEY, "Title", "Body")
    # A backend whose client is gone still ends its transaction; the fence waits for it.
    second = await an_attempt(database, run, observed_epoch=first.epoch)

    assert len(await issues(database)) == filed
    assert await second.begin() is (filed == 0)


async def test_the_token_is_not_shown(database: Database) -> None:
    attempt = await an_attempt(database, a_run())
    assert attempt.current.token not in repr(attempt.current)
    with attempt.inside(), pytest.raises(FencedError) as raised:
        await a_tracker(database).file(KEY, "Title", "Body")
    assert attempt.current.token not in str(raised.value)
