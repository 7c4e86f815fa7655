"""Attempts that claim, begin, end, crash and are overtaken in any order, beside a model of what may come of it."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy.engine import make_url

from support.databases import Database, a_run
from triage_agent.attempt.record import AttemptRecord
from triage_contract.database.engine import open_engine
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import AlreadyClaimedError, CallRunningError, FencedError, TriageError
from triage_contract.states import CallState, Outcome, Settled, ToolKind
from triage_local.postgres import PostgresServer

KEYS = st.sampled_from(["a", "b"])
Result = TypeVar("Result")


@dataclass(slots=True)
class Attempt:
    """An attempt as the model knows it. ``record`` is that of its process, which lives on whatever we think of it."""

    epoch: int
    record: AttemptRecord
    claimed: bool = False
    confirmed: bool = False


@dataclass(slots=True)
class Call:
    """A call as the model knows it. ``begun`` counts how often it may have had its effect."""

    state: CallState
    epoch: int
    begun: int = 1
    raised: bool = False
    cleared: bool = False
    result: dict[str, Any] | None = None


@dataclass(slots=True)
class Model:
    """What the database should hold. ``current`` None: nobody may write."""

    attempts: list[Attempt] = field(default_factory=list)
    current: Attempt | None = None
    calls: dict[str, Call] = field(default_factory=dict)
    clearings: int = 0


async def arrived(record: AttemptRecord, work: Coroutine[Any, Any, None]) -> None:
    """Wait for what was posted: its error is that of the next statement."""
    await work
    await record._connection.fetch("SELECT 1")


class Fencing(RuleBasedStateMachine):
    """One run, its attempts, and whoever decides about its calls."""

    database: Database
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.run = a_run()
        self.model = Model()

    def do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.loop.run_until_complete(work)

    def teardown(self) -> None:
        """Close the connections of this example: the server has fewer than all of them would be."""
        for connection in self.database.opened:
            self.do(connection.close())
        self.database.opened.clear()

    def attempt(self, data: st.DataObject) -> Attempt:
        return data.draw(st.sampled_from(self.model.attempts))

    def is_current(self, attempt: Attempt) -> bool:
        return attempt is self.model.current

    def refused(self, work: Coroutine[Any, Any, object], error: type[TriageError]) -> None:
        with pytest.raises(error):
            self.do(work)

    @initialize()
    def open_first(self) -> None:
        self._open()

    @precondition(lambda self: self.model.current is None)
    @rule()
    def open_next(self) -> None:
        self._open()

    def _open(self) -> None:
        model = self.model
        opened = self.do(self.database.open(self.run, observed_epoch=len(model.attempts)))
        assert opened.epoch == len(model.attempts) + 1
        database = self.database
        record = database.record(opened)
        model.current = Attempt(epoch=opened.epoch, record=record)
        model.attempts.append(model.current)

    @precondition(lambda self: self.model.current is not None)
    @rule()
    def crash(self) -> None:
        """The operator takes the attempt for lost; its process may go on."""
        assert self.model.current is not None
        assert self.do(self.database.close(self.run, self.model.current.epoch))
        self.model.current = None

    @rule(data=st.data())
    def confirm(self, data: st.DataObject) -> None:
        """The process of an attempt is known to be dead: in this world that is so once it is no longer current."""
        attempt = self.attempt(data)
        if not self.is_current(attempt):
            statement = (
                "UPDATE triage.attempts SET confirmed_at = now() WHERE run_id = :id AND epoch = :epoch"
            )
            self.do(self.database.values(statement, id=self.run.id, epoch=attempt.epoch))
            attempt.confirmed = True

    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        attempt = self.attempt(data)
        work = attempt.record.claim()
        if not self.is_current(attempt):
            self.refused(work, FencedError)
        elif attempt.claimed:
            self.refused(work, AlreadyClaimedError)
        else:
            self.do(work)
            attempt.claimed = True

    @rule(data=st.data(), key=KEYS, may_repeat=st.booleans())
    def begin(self, data: st.DataObject, key: str, may_repeat: bool) -> None:
        attempt, call = self.attempt(data), self.model.calls.get(key)
        work = attempt.record.begin_call(
            key,
            tool="pay",
            kind=ToolKind.UNDECLARED,
            args={},
            function_call_id=key,
            may_repeat=may_repeat,
        )
        if not self.is_current(attempt):
            return self.refused(work, FencedError)
        answer = self.do(work)
        if call is None:
            assert answer.is_begun
            self.model.calls[key] = Call(state=CallState.BEGUN, epoch=attempt.epoch)
        elif call.state is not CallState.BEGUN:
            assert (answer.is_begun, answer.is_in_doubt, answer.result) == (False, False, call.result)
        elif may_repeat or call.cleared:
            assert answer.is_begun
            call.begun, call.epoch, call.cleared, call.raised = call.begun + 1, attempt.epoch, False, False
            self.model.clearings += 1
        else:
            assert (answer.is_begun, answer.is_in_doubt) == (False, True)
        return None

    @rule(data=st.data(), key=KEYS, result=st.sampled_from([{"paid": 1}, {"paid": 2}]))
    def end(self, data: st.DataObject, key: str, result: dict[str, Any]) -> None:
        attempt, call = self.attempt(data), self.model.calls.get(key)
        work = arrived(
            attempt.record,
            attempt.record.end_call(key, state=CallState.DONE, result=result, actions={}, is_duplicate=False),
        )
        is_its_own = call is not None and call.epoch == attempt.epoch
        if not self.is_current(attempt) or not is_its_own or call is None or call.state is CallState.SETTLED:
            return self.refused(work, FencedError)
        self.do(work)
        call.state, call.result = CallState.DONE, result
        return None

    @rule(data=st.data(), key=KEYS)
    def raise_error(self, data: st.DataObject, key: str) -> None:
        attempt, call = self.attempt(data), self.model.calls.get(key)
        work = attempt.record.doubt_call(key, "It broke.")
        if not self.is_current(attempt):
            return self.refused(work, FencedError)
        self.do(work)
        if call is not None and call.state is CallState.BEGUN and call.epoch == attempt.epoch:
            call.raised = True
        return None

    @rule(data=st.data(), key=KEYS, settled=st.sampled_from(Settled))
    def settle(self, data: st.DataObject, key: str, settled: Settled) -> None:
        attempt, call = self.attempt(data), self.model.calls.get(key)
        happened = settled is Settled.HAPPENED
        result = {"found": True} if happened else None
        asked_at = datetime.now(UTC) + timedelta(seconds=1)
        work = attempt.record.settle_call(key, settled, result=result, message="Asked.", asked_at=asked_at)
        if not self.is_current(attempt) or call is None or call.state is not CallState.BEGUN:
            return self.refused(work, FencedError)
        confirmed = call.raised or self.model.attempts[call.epoch - 1].confirmed
        assert self.do(work) is (settled is Settled.NOT_HAPPENED and confirmed)
        call.raised = False
        call.cleared = settled is Settled.NOT_HAPPENED and confirmed
        if happened:
            call.state, call.result = CallState.SETTLED, result
        return None

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        attempt = self.attempt(data)
        work = attempt.record.release()
        runs = any(
            call.state is CallState.BEGUN and call.epoch == attempt.epoch and not call.raised
            for call in self.model.calls.values()
        )
        if not self.is_current(attempt):
            self.refused(work, FencedError)
        elif runs:
            self.refused(work, CallRunningError)
        else:
            self.do(work)
            self.model.current = None

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        attempt = self.attempt(data)
        work = attempt.record.finish(Outcome.FAILED, error="It failed.")
        if not self.is_current(attempt):
            return self.refused(work, FencedError)
        self.do(work)
        self.model.current = None
        return None

    @invariant()
    def the_journal_holds_what_the_model_does(self) -> None:
        rows = self.do(
            self.database.values(
                "SELECT call_id, state, epoch, begun_times, result FROM triage.tool_calls"
                " WHERE session_id = :id ORDER BY call_id",
                id=self.run.session.session_id,
            )
        )
        assert rows == [
            (key, call.state, call.epoch, call.begun, call.result)
            for key, call in sorted(self.model.calls.items())
        ]

    @invariant()
    def nothing_begins_twice_unless_it_may(self) -> None:
        assert sum(call.begun for call in self.model.calls.values()) == len(self.model.calls) + (
            self.model.clearings
        )

    @invariant()
    def the_fence_shows_the_current_attempt(self) -> None:
        rows = self.do(
            self.database.values(
                "SELECT epoch, token IS NOT NULL FROM triage.fences WHERE session_id = :id",
                id=self.run.session.session_id,
            )
        )
        assert rows in ([], [(len(self.model.attempts), self.model.current is not None)])


@pytest.fixture
def machine(postgres: PostgresServer, template: str) -> Iterator[type[Fencing]]:
    """A machine on a database of the test's own."""
    loop = asyncio.new_event_loop()
    dsn = postgres.create_database(template=template)
    url = DatabaseUrl.parse(dsn)
    engine = open_engine(url, application="test-operator", pool_size=4)

    class Machine(Fencing):
        pass

    Machine.database, Machine.loop = Database(url=url, engine=engine), loop
    yield Machine
    loop.run_until_complete(engine.dispose())
    loop.close()
    name = make_url(dsn).database
    assert name is not None
    postgres.drop_database(name)


def test_no_order_of_events_begins_or_writes_what_it_must_not(machine: type[Fencing]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=40, stateful_step_count=30, deadline=None)
    )
