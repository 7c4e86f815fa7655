"""What is counted where rows change: once, and with the change."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from support.databases import Database, a_run
from support.stub_agent import StubAgent
from triage_contract.database.engine import open_engine
from triage_contract.database.fence import NewAttempt, OpenedAttempt
from triage_contract.database.rows import RunRow
from triage_contract.states import Cause, Outcome, RunState
from triage_operator.store import Store
from triage_operator.stored import End

Opener = Callable[..., Awaitable[tuple[OpenedAttempt, StubAgent]]]
RUN = {"namespace": "docs", "agent": "default"}


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = Store(database.url, "cluster", pool_size=2)
    yield store
    await store.close()


@pytest.fixture
async def begin(database: Database, store: Store) -> AsyncIterator[Opener]:
    """Open the next attempt of a run, and let an agent claim it."""
    agents: list[StubAgent] = []

    async def begin(run: RunRow, epoch: int = 1, limit: int | None = None) -> tuple[OpenedAttempt, StubAgent]:
        attempt = NewAttempt(pod="pod", image="agent:1", memory_limit_bytes=limit)
        opened = await store.open_attempt(run, observed_epoch=epoch - 1, attempt=attempt)
        engine = open_engine(database.url, application=f"triage-agent/{opened.serial}", token=opened.token)
        agent = StubAgent(engine, run.id, opened.serial, opened.epoch, opened.token)
        agents.append(agent)
        await agent.claim()
        return opened, agent

    yield begin
    for agent in agents:
        await agent.die()


async def _lose(store: Store, run: RunRow, opened: OpenedAttempt, outcome: Outcome = Outcome.LOST) -> None:
    await store.close_fence(run.session, opened.epoch)
    await store.end_attempt(
        End(
            serial=opened.serial,
            outcome=outcome,
            cause=Cause.OOM if outcome is Outcome.LOST else None,
            counted=False,
            exit_code=None,
            confirmed=True,
            message="It ended.",
        )
    )


async def _counted(store: Store, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """Give the values of a counter by the labels that are not the run's, which all have."""
    found = {}
    for one, labels, value in await store.totals():
        if one == name:
            assert RUN.items() <= labels.items()
            found[tuple(sorted((key, str(text)) for key, text in labels.items() if key not in RUN))] = value
    return found


async def test_a_run_counts_once_however_many_attempts_it_has(store: Store, begin: Opener) -> None:
    run = a_run()
    first, _ = await begin(run)
    await _lose(store, run, first)
    await begin(run, 2)
    await store.end_run(a_run(), state=RunState.CANCELLED, reason="Cancelled", recorded="Cancelled: at once")
    assert await _counted(store, "runs_created") == {(): 2}


async def test_what_a_resume_did_not_do_again_is_counted_with_its_recovery(
    store: Store, begin: Opener, database: Database
) -> None:
    run = a_run()
    first, agent = await begin(run)
    await agent.work()
    await agent.begin("call-1")
    await agent.end("call-1")
    await database.values("UPDATE triage.model_replies SET seconds = 1.5")
    await database.values("UPDATE triage.tool_calls SET ended_at = begun_at + interval '2 seconds'")
    await _lose(store, run, first)
    _, agent = await begin(run, 2)
    await store.count_recoveries()
    assert await _counted(store, "replies_replayed") == {}
    await agent.work()
    for _ in range(2):
        await store.count_recoveries()
    assert await _counted(store, "replies_replayed") == {(): 1}
    assert await _counted(store, "tokens_saved") == {(("kind", "output"),): 5, (("kind", "prompt"),): 10}
    assert await _counted(store, "seconds_saved") == {(("kind", "model"),): 1.5, (("kind", "tool"),): 2}


async def test_an_attempt_counts_as_refused_once_it_learns_that_it_was_overtaken(
    store: Store, begin: Opener
) -> None:
    run = a_run()
    first, agent = await begin(run)
    await _lose(store, run, first)
    _, successor = await begin(run, 2)
    for _ in range(2):
        await agent.heartbeat()
    await successor.heartbeat()
    assert await _counted(store, "fence_refusals") == {(): 1}


async def test_an_attempt_that_gave_its_fence_up_was_not_refused(store: Store, begin: Opener) -> None:
    _, agent = await begin(a_run())
    await agent.release()
    await agent.heartbeat()
    assert await _counted(store, "fence_refusals") == {}


async def test_calls_in_doubt_are_counted_by_tool_and_so_is_what_a_person_decides(
    store: Store, begin: Opener
) -> None:
    run = a_run()
    opened, agent = await begin(run)
    for call in ("call-1", "call-2"):
        await agent.begin(call)
    await _lose(store, run, opened, Outcome.IN_DOUBT)
    assert await _counted(store, "calls_in_doubt_found") == {(("tool", "send_mail"),): 2}
    for _ in range(2):
        await store.carry_out(run, fence=1, call="call-1", epoch=1, result={"id": 7})
        await store.carry_out(run, fence=1, call="call-2", epoch=1, result=None)
    decided = {(("action", "Done"),): 1, (("action", "RunAgain"),): 1}
    assert await _counted(store, "decisions") == decided


async def test_repairs_and_suppressed_duplicates_are_counted(store: Store, begin: Opener) -> None:
    run = a_run()
    _, agent = await begin(run)
    await agent.note_repair("It was mended.")
    await agent.file_issue(duplicate=True)
    await agent.begin("call-1")
    assert await _counted(store, "repairs") == {(): 1}
    assert await _counted(store, "duplicates_suppressed") == {
        (("tool", "file_issue"), ("where", where)): 1 for where in ("journal", "tracker")
    }


async def test_more_memory_and_waits_for_the_model_are_counted_with_the_next_pod(
    store: Store, begin: Opener, database: Database
) -> None:
    run = a_run()
    first, _ = await begin(run, limit=100)
    await _lose(store, run, first, Outcome.MODEL_UNAVAILABLE)
    await database.values("UPDATE triage.attempts SET ended_at = ended_at - interval '30 seconds'")
    second, _ = await begin(run, 2, limit=200)
    for _ in range(2):
        await store.record_pod(second.serial, pod_uid="uid-2")
    assert await _counted(store, "memory_raises") == {(("how", "next_attempt"),): 1}
    assert await _counted(store, "model_waits") == {(): 1}
    assert (await _counted(store, "model_wait_seconds"))[()] == pytest.approx(30, abs=5)


async def test_the_parts_of_a_start_and_the_attempts_of_a_run_are_counted_at_their_ends(
    store: Store, begin: Opener, database: Database
) -> None:
    run = a_run()
    opened, agent = await begin(run)
    ((now,),) = await database.values("SELECT clock_timestamp()")
    await store.record_node(opened.serial, node="node-1", scheduled_at=None)
    await store.record_start(opened.serial, started_at=now)  # type: ignore[arg-type]
    await agent.work()
    await _lose(store, run, opened)
    for _ in range(2):
        await store.end_run(run, state=RunState.FAILED, reason="NoProgress", recorded="NoProgress: so it is")
    starts = await _counted(store, "start_seconds_bucket")
    reached = {stage for labels in starts for key, stage in labels if key == "stage"}
    assert reached == {"scheduled", "started", "claimed", "first_write"}
    attempts = await _counted(store, "attempts_per_run_bucket")
    assert attempts[(("le", "1"), ("state", "failed"))] == 1
    assert attempts[(("le", "+Inf"), ("state", "failed"))] == 1
    assert (await _counted(store, "attempts_per_run_sum")) == {(("state", "failed"),): 1}


async def test_an_issue_that_a_run_filed_again_word_for_word_is_found(
    store: Store, begin: Opener, database: Database
) -> None:
    run = a_run()
    await begin(run)
    insert = (
        "INSERT INTO triage.issues (key, title, body, run_id) VALUES (:key, :title, 'It is wrong.', :run)"
    )
    for key, title in (("1", "Tokens"), ("2", "Tokens"), ("3", "Config")):
        await database.values(f"{insert} RETURNING 1", key=key, title=title, run=run.id)
    assert await store.duplicate_effects() == (("duplicate_effects", RUN, 1.0),)
