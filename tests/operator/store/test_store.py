"""The operator's statements, on Postgres."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from support.databases import Database, a_run
from support.stub_agent import StubAgent
from triage_contract.database.engine import open_engine
from triage_contract.database.fence import NewAttempt, OpenedAttempt
from triage_contract.database.rows import RunRow
from triage_contract.exceptions import EpochMovedError
from triage_contract.states import Cause, Outcome, RunState, Verdict
from triage_operator.store import Store
from triage_operator.stored import End


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = Store(database.url, "cluster", pool_size=2)
    yield store
    await store.close()


@pytest.fixture
async def agents(database: Database) -> AsyncIterator[list[StubAgent]]:
    started: list[StubAgent] = []
    yield started
    for agent in started:
        await agent.die()


def _start(database: Database, run: RunRow, opened: OpenedAttempt, agents: list[StubAgent]) -> StubAgent:
    engine = open_engine(database.url, application=f"triage-agent/{opened.serial}", token=opened.token)
    agent = StubAgent(engine, run.id, opened.serial, opened.epoch, opened.token)
    agents.append(agent)
    return agent


async def _open(
    store: Store, run: RunRow, observed_epoch: int = 0, *, memory_limit_bytes: int | None = None
) -> OpenedAttempt:
    attempt = NewAttempt(pod="pod", image="agent:1", memory_limit_bytes=memory_limit_bytes)
    return await store.open_attempt(run, observed_epoch=observed_epoch, attempt=attempt)


def _lost(opened: OpenedAttempt, cause: Cause | None = Cause.SIGKILL) -> End:
    return End(
        serial=opened.serial,
        outcome=Outcome.LOST,
        cause=cause,
        counted=True,
        exit_code=137,
        confirmed=False,
        message="It was killed.",
    )


async def _call_of(database: Database) -> tuple[object, ...]:
    [row] = await database.values("SELECT state, result, cleared_by, settled_by FROM triage.tool_calls")
    return row


async def _counters(database: Database, *labels: str) -> dict[tuple[str, ...], float]:
    shown = "".join(f", coalesce(labels ->> '{label}', '')" for label in labels)
    rows = await database.values(
        f"SELECT name{shown}, value FROM triage.totals"
        " WHERE name NOT SIMILAR TO '%(_bucket|_sum)' AND name <> 'runs_created'"
    )
    return {tuple(map(str, row[:-1])): float(str(row[-1])) for row in rows}


async def test_a_run_that_was_never_recorded_has_nothing(store: Store) -> None:
    records = await store.read(a_run())
    assert (records.row, records.attempts, records.fence, records.judgement) == (None, (), None, None)
    assert records.running == 0


async def test_a_run_is_read_with_all_that_its_agent_left(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    run = a_run()
    opened = await _open(store, run)
    agent = _start(database, run, opened, agents)
    await agent.claim()
    await agent.work()
    await agent.file_issue(41, duplicate=True)
    await agent.answer("Filed.")
    assert (await store.read(run)).judgement is None
    await agent.finish()
    await store.end_attempt(dataclasses.replace(_lost(opened), outcome=Outcome.FINISHED, cause=None))
    records = await store.read(run)
    assert records.row is not None
    assert records.row.root == {"name": "docs_triage", "kind": "llm", "fingerprint": "1"}
    assert records.judgement is not None
    assert (records.judgement.verdict, records.judgement.text) == (Verdict.FINISHED, "Filed.")
    assert dataclasses.astuple(records.calls) == (1, 1, 0, 1)
    assert records.issue == "41"
    assert records.running == 0


async def test_the_next_attempt_needs_a_closed_fence_at_the_observed_epoch(store: Store) -> None:
    run = a_run()
    await _open(store, run)
    with pytest.raises(EpochMovedError):
        await _open(store, run, observed_epoch=1)
    await store.close_fence(run.session, 1)
    assert (await _open(store, run, observed_epoch=1)).epoch == 2
    with pytest.raises(EpochMovedError):
        await _open(store, run, observed_epoch=1)


async def test_an_end_is_recorded_and_counted_once(store: Store, database: Database) -> None:
    run = a_run()
    opened = await _open(store, run)
    await store.end_attempt(_lost(opened))
    await store.end_attempt(dataclasses.replace(_lost(opened), outcome=Outcome.CANCELLED, cause=None))
    (attempt,) = await store.attempts(run.id)
    assert (attempt.outcome, attempt.cause, attempt.exit_code) == (Outcome.LOST, Cause.SIGKILL, 137)
    assert attempt.error == "It was killed."
    assert attempt.lost_at is not None
    assert await _counters(database, "outcome", "cause") == {
        ("attempts", "lost", "sigkill"): 1,
        ("losses", "", "sigkill"): 1,
    }


async def test_a_loss_without_a_cause_counts_once_it_has_one_and_a_corrected_one_does_not_count_again(
    store: Store, database: Database
) -> None:
    run = a_run()
    opened = await _open(store, run)
    await store.close_fence(run.session, 1)
    await store.end_attempt(_lost(opened, cause=None))
    second = await _open(store, run, observed_epoch=1)
    await store.record_pod(second.serial, pod_uid="uid-2")
    assert await _counters(database, "cause") == {}
    # Two operators may see the same pod.
    await asyncio.gather(*(store.fill_cause(_lost(opened, cause=Cause.VANISHED)) for _ in range(8)))
    await store.fill_cause(_lost(opened, cause=Cause.OOM))
    (attempt, _) = await store.attempts(run.id)
    assert attempt.cause is Cause.OOM
    assert await _counters(database, "cause") == {
        (name, "vanished"): 1 for name in ("attempts", "losses", "resumes")
    }


async def test_a_pod_is_recorded_once_and_counts_as_a_resume_after_a_loss(
    store: Store, database: Database
) -> None:
    run = a_run()
    first = await _open(store, run)
    await store.record_pod(first.serial, pod_uid="uid-1")
    await store.close_fence(run.session, 1)
    await store.end_attempt(_lost(first))
    second = await _open(store, run, observed_epoch=1)
    for uid in ("uid-2", "uid-3"):
        await store.record_pod(second.serial, pod_uid=uid)
    await store.rename_pod(second.serial, pod="too-late")
    _, attempt = await store.attempts(run.id)
    assert (attempt.pod_uid, attempt.pod) == ("uid-2", "pod")
    assert (await _counters(database, "cause"))["resumes", "sigkill"] == 1


async def test_the_time_from_a_loss_to_the_next_write_is_counted_once_while_the_attempt_is_open(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    run = a_run()
    first = await _open(store, run)
    await store.close_fence(run.session, 1)
    await store.end_attempt(_lost(first))
    second = await _open(store, run, observed_epoch=1)
    agent = _start(database, run, second, agents)
    await agent.claim()
    await store.count_recoveries()
    buckets = "SELECT labels ->> 'le', value FROM triage.totals WHERE name = 'recovery_seconds_bucket'"
    assert await database.values(buckets) == []
    await agent.work()
    await store.count_recoveries()
    await store.count_recoveries()
    await store.close_fence(run.session, 2)
    await store.end_attempt(_lost(second))
    counted = {str(le): value for le, value in await database.values(buckets)}
    assert counted["+Inf"] == 1
    assert counted["600"] == 1
    [(total,)] = await database.values("SELECT value FROM triage.totals WHERE name = 'recovery_seconds_sum'")
    assert 0 <= float(str(total)) < 60


async def test_a_handoff_is_asked_for_once(store: Store, database: Database) -> None:
    run = a_run()
    opened = await _open(store, run)
    await store.request_handoff(opened.serial, reason="drain")
    await store.request_handoff(opened.serial, reason="suspended")
    (attempt,) = await store.attempts(run.id)
    assert attempt.handoff_reason == "drain"
    assert attempt.handoff_requested_at is not None


async def test_the_end_of_a_run_is_recorded_and_counted_once_with_the_resume_that_it_refuses(
    store: Store, database: Database
) -> None:
    run = a_run()
    opened = await _open(store, run)
    await store.close_fence(run.session, 1)
    await store.end_attempt(_lost(opened))
    for state in (RunState.FAILED, RunState.SUCCEEDED):
        await store.end_run(run, state=state, reason="NoProgress", recorded="NoProgress: three times")
    records = await store.read(run)
    assert records.row is not None
    assert (records.row.state, records.row.reason) == (RunState.FAILED, "NoProgress: three times")
    assert records.row.ended_at is not None
    counters = await _counters(database, "reason")
    assert counters["runs_ended", "NoProgress"] == 1
    assert counters["resumes_refused", "NoProgress"] == 1


async def test_the_end_of_a_run_that_never_began_is_recorded_too(store: Store, database: Database) -> None:
    run = a_run()
    await store.end_run(run, state=RunState.CANCELLED, reason="Cancelled", recorded="Cancelled: by the user")
    records = await store.read(run)
    assert records.row is not None
    assert records.row.state is RunState.CANCELLED
    assert await _counters(database, "reason") == {("runs_ended", "Cancelled"): 1}


async def test_active_runs_are_those_of_this_cluster_and_of_a_name_where_asked(
    store: Store, database: Database
) -> None:
    ours, over, elsewhere = a_run(), a_run(), replace(a_run(), cluster_id="elsewhere")
    opened = await _open(store, ours)
    await _open(store, elsewhere)
    await store.end_run(over, state=RunState.FAILED, reason="Failed", recorded="Failed: so it is")
    (active,) = await store.active_runs()
    assert (active.row.id, active.epoch, active.open_serial) == (ours.id, 1, opened.serial)
    assert [found.row.id for found in await store.active_runs(("docs", "tokens"))] == [ours.id]
    assert await store.active_runs(("docs", "other")) == ()
    assert await store.run_key(ours.id) == ("docs", "tokens")
    assert await store.run_key(elsewhere.id) is None


async def test_a_look_tells_the_signs_of_life_of_claimed_attempts(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    runs = [a_run() for _ in range(4)]
    alive, lockless, silent, unclaimed = [
        _start(database, run, await _open(store, run), agents) for run in runs
    ]
    await alive.claim()
    await lockless.claim(lock=False)
    await silent.claim()
    await database.values(
        "UPDATE triage.attempts SET heartbeat_at = now() - interval '1 minute' WHERE serial = :serial",
        serial=silent.serial,
    )
    look = await store.look(lapse_seconds=15)
    assert look.held == {alive.serial, silent.serial}
    assert look.free == {lockless.serial}
    assert look.silent == {silent.serial}
    assert look.released == frozenset()
    await alive.release()
    await silent.die()
    look = await store.look(lapse_seconds=15)
    assert look.released == {alive.serial}
    assert look.free == {lockless.serial, silent.serial}
    assert await store.runs_of([alive.serial]) == {("docs", "tokens")}
    assert unclaimed.serial not in look.held | look.free


async def test_a_look_tells_which_attempts_are_near_their_memory_limit(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    near, far, unlimited = [
        _start(database, run, await _open(store, run, memory_limit_bytes=limit), agents)
        for run, limit in ((a_run(), 100), (a_run(), 100), (a_run(), None))
    ]
    for agent, used in ((near, 75), (far, 74), (unlimited, 75)):
        await agent.claim()
        await agent.heartbeat(used)
    assert (await store.look(lapse_seconds=15)).cramped == {(near.serial, 100)}
    await near.heartbeat(10)
    assert (await store.look(lapse_seconds=15)).cramped == frozenset()


async def test_more_memory_is_recorded_and_counted_once_for_each_raise(
    store: Store, database: Database
) -> None:
    run = a_run()
    opened = await _open(store, run, memory_limit_bytes=100)
    for limit in (150, 150, 120, 225):
        await store.record_raise(opened.serial, memory_limit_bytes=limit)
    (attempt,) = await store.attempts(run.id)
    assert attempt.memory_limit_bytes == 225
    assert await _counters(database, "namespace") == {("memory_raises", run.namespace): 2}


async def test_an_agents_facts_are_its_open_attempts_and_the_tools_that_nobody_declared(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    run = a_run()
    agent = _start(database, run, await _open(store, run), agents)
    await agent.claim()
    facts = await store.agent_facts("docs", "default")
    assert (facts.running, facts.undeclared) == (1, None)
    await agent.file_issue()
    assert (await store.agent_facts("docs", "default")).undeclared == frozenset()
    await database.values("UPDATE triage.tool_calls SET kind = 'Undeclared'")
    assert (await store.agent_facts("docs", "default")).undeclared == frozenset({"file_issue"})
    assert (await store.agent_facts("docs", "other")).running == 0


async def test_a_decision_is_carried_out_once_and_only_while_nobody_may_write(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    run = a_run()
    opened = await _open(store, run)
    agent = _start(database, run, opened, agents)
    await agent.claim()
    await agent.begin("call-1")

    await store.carry_out(run, fence=1, call="call-1", epoch=1, result={})
    assert await _call_of(database) == ("begun", None, None, None)
    await store.close_fence(run.session, 1)
    await store.carry_out(run, fence=2, call="call-1", epoch=1, result={})
    await store.carry_out(run, fence=1, call="call-1", epoch=2, result={})
    assert await _call_of(database) == ("begun", None, None, None)
    await store.carry_out(run, fence=1, call="call-1", epoch=1, result=None)
    assert await _call_of(database) == ("begun", None, "decision", None)
    await store.carry_out(run, fence=1, call="call-1", epoch=1, result={"id": "\ud800"})
    await store.carry_out(run, fence=1, call="call-1", epoch=1, result={"id": "other"})
    assert await _call_of(database) == ("settled", {"id": "\ufffd"}, None, "decision")


async def test_calls_without_an_end_are_read_once_their_attempt_has_ended(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    run = a_run()
    opened = await _open(store, run)
    agent = _start(database, run, opened, agents)
    await agent.claim()
    await agent.file_issue()
    await agent.begin("call-2")
    await agent.note_repair("It was lost.")
    open_records = await store.read(run, decided=["call-1"])
    await store.close_fence(run.session, 1)
    await store.end_attempt(_lost(opened))
    records = await store.read(run)
    decided = await store.read(run, decided=["call-1"])
    assert open_records.journal == ()
    assert [(call.key, call.state, call.epoch) for call in records.journal] == [("call-2", "begun", 1)]
    assert [(call.key, call.state) for call in decided.journal] == [("call-1", "done"), ("call-2", "begun")]
    assert [repair.message for repair in records.repairs] == ["It was lost."]


async def test_a_death_is_confirmed_once(store: Store) -> None:
    run = a_run()
    opened = await _open(store, run)
    await store.end_attempt(_lost(opened, cause=None))
    await store.confirm_death(opened.serial)
    (first,) = await store.attempts(run.id)
    await store.confirm_death(opened.serial)
    await store.fill_cause(replace(_lost(opened), confirmed=True))
    (second,) = await store.attempts(run.id)
    assert first.confirmed_at is not None
    assert second.confirmed_at == first.confirmed_at


async def test_the_tools_of_an_agent_are_those_that_its_newest_run_has_and_those_that_were_called(
    store: Store, database: Database, agents: list[StubAgent]
) -> None:
    assert (await store.agent_facts("docs", "default")).undeclared is None
    run = a_run()
    opened = await _open(store, run)
    root = '{"name": "docs", "kind": "llm", "tools": {"deploy": "Undeclared", "read_page": "ReadOnly"}}'
    await database.values("UPDATE triage.runs SET root = CAST(:root AS jsonb)", root=root)
    assert (await store.agent_facts("docs", "default")).undeclared == frozenset({"deploy"})
    agent = _start(database, run, opened, agents)
    await agent.claim()
    await agent.begin("call-1", tool="send_mail")
    assert (await store.agent_facts("docs", "default")).undeclared == frozenset({"deploy", "send_mail"})
