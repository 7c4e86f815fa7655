"""``maxRunning``: so many runs at once, the oldest first."""

from support.databases import Database
from support.operated import Cluster, operating, settings_for, until
from support.stub_agent import StubAgents


async def test_runs_beyond_the_limit_wait_for_a_place_the_oldest_first(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent(concurrency={"maxRunning": 2})
    for number in range(5):
        await cluster.create_run(f"run-{number}")
    async with operating(settings_for(cluster, database)):
        await cluster.pod_of(1, "run-0")
        await cluster.pod_of(1, "run-1")

        async def queued() -> bool | None:
            reasons = [
                condition["reason"]
                for number in (2, 3, 4)
                for condition in (await cluster.run(f"run-{number}")).get("status", {}).get("conditions", ())
                if condition["type"] == "Progressing"
            ]
            return True if reasons == ["Queued"] * 3 else None

        await until(queued)
        assert len(await cluster.pods()) == 2
        for number in range(5):
            await agents.finish(1, f"run-{number}")
            await cluster.run_in("Succeeded", f"run-{number}")
    made = [pod["metadata"]["ownerReferences"][0]["name"] for pod in await cluster.pods()]
    assert sorted(made) == [f"run-{number}" for number in range(5)]
    (open_at_most,) = await database.values(
        "SELECT max(n) FROM (SELECT (SELECT count(*) FROM triage.attempts b WHERE b.created_at <= a.created_at"
        " AND coalesce(b.ended_at, 'infinity') > a.created_at) AS n FROM triage.attempts a) AS counts"
    )
    assert open_at_most == (2,)


async def test_raising_the_limit_lets_waiting_runs_start(cluster: Cluster, database: Database) -> None:
    await cluster.create_agent(concurrency={"maxRunning": 1})
    for number in range(3):
        await cluster.create_run(f"run-{number}")
    async with operating(settings_for(cluster, database)):

        async def count(expected: int) -> bool | None:
            return True if len(await cluster.pods()) == expected else None

        await until(lambda: count(1))
        await cluster.change_agent(concurrency={"maxRunning": 3})
        await until(lambda: count(3))
