"""An agent that changes while its runs are at work, seen through a running operator."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from support.databases import Database
from support.operated import Cluster, Json, operating, settings_for, until
from support.stub_agent import StubAgent, StubAgents

RESTART = {"strategy": "Restart", "maxUnavailable": 1}
NAMES = ("run-0", "run-1", "run-2")


async def _asked(database: Database) -> set[str]:
    """Give the runs whose newest attempt was asked to hand off for a rollout."""
    rows = await database.values(
        "SELECT r.name FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id"
        " WHERE a.handoff_reason = 'rollout' AND a.ended_at IS NULL"
    )
    return {str(name) for (name,) in rows}


async def _turn_of(database: Database) -> str:
    """Wait until a run is asked, and give it: no other may be."""

    async def found() -> str | None:
        asked = await _asked(database)
        assert len(asked) <= 1
        return asked.pop() if asked else None

    return await until(found, seconds=30)


async def _shows(cluster: Cluster, reason: str, *names: str) -> None:
    """Wait until runs show a reason for how they get on."""

    async def found() -> bool | None:
        shown = [_progress(await cluster.run(name)) for name in names]
        return True if shown == [reason] * len(names) else None

    await until(found, seconds=30)


def _progress(run: Json) -> str | None:
    conditions = (run.get("status") or {}).get("conditions") or ()
    return next((str(one["reason"]) for one in conditions if one["type"] == "Progressing"), None)


def _image(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["image"])


async def _at_work(cluster: Cluster, agents: StubAgents) -> dict[str, StubAgent]:
    for name in NAMES:
        await cluster.create_run(name)
    return {name: (await agents.start(1, name))[1] for name in NAMES}


@asynccontextmanager
async def _rolling_out(
    cluster: Cluster, database: Database, agents: StubAgents, image: str = "agent:2"
) -> AsyncIterator[dict[str, StubAgent]]:
    """Have runs at work while an operator rolls out another image; give their processes."""
    await cluster.create_agent(rollout=RESTART)
    async with operating(settings_for(cluster, database)):
        working = await _at_work(cluster, agents)
        await cluster.change_agent(image=image)
        yield working


async def test_each_run_hands_off_in_its_turn_and_goes_on_with_the_change(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    async with _rolling_out(cluster, database, agents) as working:
        for left in range(len(NAMES), 0, -1):
            turn = await _turn_of(database)
            process = working.pop(turn)
            assert await process.heartbeat() == "rollout"
            await _shows(cluster, "Outdated", *working)
            assert len(working) == left - 1
            await process.release()
            await process.die()
            pod = await cluster.pod_of(2, turn)
            assert _image(pod) == "agent:2"
            assert await _asked(database) == set()
            # Its claim alone does not free its place: what it has written does.
            successor = await agents.in_pod(pod)
            await cluster.start_pod(pod)
            await successor.claim()
            await _shows(cluster, "Running", turn)
            assert await _asked(database) == set()
            await successor.work()
        for name in NAMES:
            await _shows(cluster, "Running", name)
            status = (await cluster.run(name))["status"]
            assert [one.get("cause") for one in status["attempts"]] == ["rollout", None]
            assert (status["lastCause"], status["noProgress"]) == ("rollout", 0)
    assert await database.values("SELECT count(*) FROM triage.attempts WHERE counted") == [(0,)]


async def test_a_change_that_cannot_start_stops_at_its_places_and_a_better_one_goes_on(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    async with _rolling_out(cluster, database, agents, "agent:missing") as working:
        turn = await _turn_of(database)
        await working.pop(turn).release()
        pod = await cluster.pod_of(2, turn)
        await cluster.set_pod(pod, "Pending", {"waiting": {"reason": "ImagePullBackOff"}})
        await _shows(cluster, "StartBlocked", turn)
        await _shows(cluster, "Outdated", *working)
        assert await _asked(database) == set()
        await cluster.change_agent(image="agent:2")
        pod, _ = await agents.start(3, turn)
        assert _image(pod) == "agent:2"
        assert await _turn_of(database) in working
        causes = [one.get("cause") for one in (await cluster.run(turn))["status"]["attempts"]]
        assert causes == ["rollout", "rollout", None]


async def test_a_run_that_is_suspended_or_deleted_leaves_its_place_to_the_next(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    async with _rolling_out(cluster, database, agents) as working:
        suspended = await _turn_of(database)
        await cluster.change_run(suspended, suspend=True)
        await working.pop(suspended).release()
        await cluster.run_in("Suspended", suspended)
        deleted = await _turn_of(database)
        working.pop(deleted)
        await cluster.delete_run(deleted)
        (last,) = working

        async def is_turn_of_last() -> bool | None:
            return True if await _asked(database) == {last} else None

        await until(is_turn_of_last, seconds=30)


async def test_by_default_an_attempt_goes_on_as_it_was_made(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        working = await _at_work(cluster, agents)
        await cluster.change_agent(image="agent:2", tools={"deploy": "ReadOnly"})
        await cluster.create_run("later")
        assert _image(await cluster.pod_of(1, "later")) == "agent:2"
        await working["run-0"].release()
        assert _image(await cluster.pod_of(2, "run-0")) == "agent:2"
        for name in NAMES[1:]:
            await working[name].answer("Done.")
            await working[name].finish()
            await cluster.run_in("Succeeded", name)
    assert await database.values(
        "SELECT count(*) FROM triage.attempts WHERE handoff_requested_at IS NOT NULL"
    ) == [(0,)]


async def test_another_operator_finds_the_same_pods_outdated(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent(rollout=RESTART)
    async with AsyncExitStack() as first:
        await first.enter_async_context(operating(settings_for(cluster, database)))
        await _at_work(cluster, agents)
        await _shows(cluster, "Running", *NAMES)
    async with operating(settings_for(cluster, database)):
        await cluster.create_run("later")
        await cluster.pod_of(1, "later")
        assert await _asked(database) == set()
    await cluster.change_agent(image="agent:2")
    async with operating(settings_for(cluster, database)):
        turn = await _turn_of(database)
        await _shows(cluster, "Outdated", *(name for name in NAMES if name != turn))
