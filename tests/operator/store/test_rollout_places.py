"""Places of a rollout: never more runs between two attempts than there are places, whoever asks at once."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest

from support.databases import Database, a_run
from triage_contract.database.fence import NewAttempt
from triage_contract.database.rows import RunRow
from triage_contract.states import Cause, Outcome, RunState
from triage_operator.store import Store
from triage_operator.stored import End


@pytest.fixture
async def stores(database: Database) -> AsyncIterator[tuple[Store, Store]]:
    """Two operators that both believe that they lead."""
    stores = (
        Store(database.url, "cluster", pool_size=6),
        Store(database.url, "cluster", pool_size=6),
    )
    yield stores
    for store in stores:
        await store.close()


@dataclass
class Work:
    """A run with an attempt at work, which a test brings on step by step."""

    store: Store
    database: Database
    run: RunRow
    serial: int = 0
    epoch: int = 0

    @classmethod
    async def start(cls, store: Store, database: Database, name: str, **row: Any) -> "Work":
        work = cls(store=store, database=database, run=dataclasses.replace(a_run(), name=name, **row))
        await work.open()
        await work.write()
        return work

    async def open(self) -> None:
        attempt = NewAttempt(pod="pod", image="agent:1", memory_limit_bytes=None)
        opened = await self.store.open_attempt(self.run, observed_epoch=self.epoch, attempt=attempt)
        self.serial, self.epoch = opened.serial, opened.epoch

    async def claim(self) -> None:
        await self._set("claimed_at = clock_timestamp(), heartbeat_at = clock_timestamp()")

    async def write(self) -> None:
        await self._set("claimed_at = clock_timestamp(), first_write_at = clock_timestamp()")

    async def end(self, cause: Cause = Cause.ROLLOUT) -> None:
        await self.store.close_fence(self.run.session, self.epoch)
        outcome = Outcome.HANDED_OFF if cause is Cause.ROLLOUT else Outcome.LOST
        await self.store.end_attempt(
            End(
                serial=self.serial,
                outcome=outcome,
                cause=cause,
                counted=False,
                exit_code=None,
                confirmed=False,
                message="It ended.",
            )
        )

    async def ask(
        self, store: Store | None = None, *, places: int = 1, resting: tuple[str, ...] = ()
    ) -> bool:
        asking = store or self.store
        return await asking.request_rollout(self.run, self.serial, places=places, resting=resting)

    async def _set(self, assignments: str) -> None:
        await self.database.values(
            f"UPDATE triage.attempts SET {assignments} WHERE serial = :serial", serial=self.serial
        )


async def _ask_all(works: list[Work], stores: tuple[Store, Store], places: int) -> list[Work]:
    """Ask all at once, by both operators in turn; give those that were asked."""
    asks = (work.ask(store, places=places) for work, store in zip(works, cycle(stores), strict=False))
    answers = await asyncio.gather(*asks)
    return [work for work, asked in zip(works, answers, strict=True) if asked]


async def test_places_are_never_exceeded_whoever_asks_at_once(
    stores: tuple[Store, Store], database: Database
) -> None:
    waiting = [await Work.start(stores[0], database, f"run-{number}") for number in range(12)]
    between = await _ask_all(waiting, stores, places=3)
    assert len(between) == 3
    while True:
        waiting = [work for work in waiting if work not in between]
        for work in between:
            await work.end()
        assert await _ask_all(waiting, stores, places=3) == []
        for work in between:
            await work.open()
            await work.claim()
        assert await _ask_all(waiting, stores, places=3) == []
        if not waiting:
            break
        await between.pop().write()
        asked = await _ask_all(waiting, stores, places=3)
        assert len(asked) == 1
        between += asked
    # From one request to the successor's first write, by the database's clock, beside what the asking saw.
    [(at_once,)] = await database.values(
        "WITH spans AS (SELECT a.handoff_requested_at AS since, coalesce(n.first_write_at, 'infinity') AS until"
        " FROM triage.attempts a JOIN triage.attempts n ON n.run_id = a.run_id AND n.epoch = a.epoch + 1"
        " WHERE a.handoff_reason = 'rollout')"
        " SELECT max((SELECT count(*) FROM spans o WHERE o.since <= s.since AND o.until > s.since)) FROM spans s"
    )
    assert at_once == 3


async def test_an_attempt_is_asked_once(stores: tuple[Store, Store], database: Database) -> None:
    work = await Work.start(stores[0], database, "tokens")
    answers = await asyncio.gather(*(work.ask(store, places=9) for store in stores * 4))
    assert sorted(answers) == [False] * 7 + [True]
    [(reason, asked)] = await database.values(
        "SELECT handoff_reason, handoff_requested_at IS NOT NULL FROM triage.attempts"
    )
    assert (reason, asked) == ("rollout", True)


async def test_a_run_takes_its_place_until_a_later_attempt_has_written(
    stores: tuple[Store, Store], database: Database
) -> None:
    store = stores[0]
    work, other = [await Work.start(store, database, name) for name in ("tokens", "other")]

    async def seen() -> bool:
        return await store.between(other.run) == {"tokens"}

    assert not await seen()
    assert await work.ask()
    assert await seen()
    # Its own place is no other's.
    assert await store.between(work.run) == frozenset()
    await work.end()
    assert await seen()
    await work.open()
    assert await seen()
    await work.claim()
    assert await seen()
    await work.end(Cause.APP_ERROR)
    await work.open()
    assert await seen()
    await work.write()
    assert not await seen()
    # Another rollout is another turn.
    assert await work.ask()
    assert await seen()
    await store.end_run(work.run, state=RunState.SUCCEEDED, reason="Completed", recorded="Completed")
    assert not await seen()


async def test_only_runs_of_the_same_agent_that_do_not_rest_take_places(
    stores: tuple[Store, Store], database: Database
) -> None:
    work = await Work.start(stores[0], database, "tokens")
    for name, row in (
        ("of-another-agent", {"agent": "other"}),
        ("elsewhere", {"namespace": "elsewhere"}),
        ("of-another-cluster", {"cluster_id": "another"}),
        ("suspended", {}),
    ):
        other = await Work.start(stores[0], database, name, **row)
        assert await other.ask(places=1)
    assert await stores[0].between(work.run) == {"suspended"}
    assert not await work.ask()
    assert await work.ask(resting=("suspended",))


async def test_an_attempt_that_is_to_hand_off_for_another_reason_takes_no_place(
    stores: tuple[Store, Store], database: Database
) -> None:
    draining, other = [await Work.start(stores[0], database, name) for name in ("draining", "other")]
    await stores[0].request_handoff(draining.serial, reason=Cause.DRAIN)
    assert not await draining.ask()
    assert await stores[0].between(other.run) == frozenset()
