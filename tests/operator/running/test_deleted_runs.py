"""Runs that are deleted while something works on them, and made again under the same name."""

from dataclasses import replace

from support.databases import Database
from support.operated import Cluster, Json, operating, settings_for, until
from support.stub_agent import StubAgents

ROWS = "SELECT r.id::text, r.state, f.token FROM triage.runs r JOIN triage.fences f USING (session_id)"


async def _ended(database: Database, uid: str) -> bool | None:
    rows = await database.values(f"{ROWS} WHERE r.id = :id", id=uid)
    return True if rows == [(uid, "cancelled", None)] else None


async def test_the_row_of_a_deleted_run_is_ended_and_its_fence_closed(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        run = await cluster.create_run()
        await agents.start(1)
        await cluster.delete_run()
        await until(lambda: _ended(database, run["metadata"]["uid"]))


async def test_a_run_that_is_made_again_at_once_is_another_run(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    settings = settings_for(cluster, database)
    # Not by the sweep: the new run's first pass ends the old one's row.
    never = replace(settings.reconciling, sweep_seconds=3600.0)
    async with operating(replace(settings, reconciling=never)):
        first = await cluster.create_run()
        await agents.start(1)
        await cluster.delete_run()
        second = await cluster.create_run()
        await until(lambda: _ended(database, first["metadata"]["uid"]))

        async def pod_of_second() -> Json | None:
            for pod in await cluster.pods():
                if pod["metadata"]["ownerReferences"][0]["uid"] == second["metadata"]["uid"]:
                    return pod
            return None

        pod = await until(pod_of_second)
        agent = await agents.in_pod(pod)
        await cluster.start_pod(pod)
        await agent.claim()
        await agent.answer("Done.")
        await agent.finish()
        status = (await cluster.run_in("Succeeded"))["status"]
    assert status["attempt"] == 1
    assert status["session"] == f"run-{second['metadata']['uid']}"


async def test_a_run_that_was_deleted_while_no_operator_ran_is_ended_by_the_sweep(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        run = await cluster.create_run()
        await agents.start(1)
        await cluster.run_in("Running")
    await cluster.delete_run()
    async with operating(settings_for(cluster, database)):
        await until(lambda: _ended(database, run["metadata"]["uid"]))


async def test_rows_of_another_cluster_and_of_namespaces_that_are_not_watched_are_left_alone(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    settings = settings_for(cluster, database)
    async with operating(settings):
        run = await cluster.create_run()
        await agents.start(1)
    await database.values(
        "INSERT INTO triage.runs (id, cluster_id, namespace, name, agent, app_name, user_id, session_id,"
        " invocation_id) SELECT gen_random_uuid(), 'elsewhere', namespace, 'other', agent, app_name, user_id,"
        " 'run-elsewhere', invocation_id FROM triage.runs"
    )
    await database.values(
        "INSERT INTO triage.runs (id, cluster_id, namespace, name, agent, app_name, user_id, session_id,"
        " invocation_id) SELECT gen_random_uuid(), cluster_id, 'unwatched', 'other', agent, app_name, user_id,"
        " 'run-unwatched', invocation_id FROM triage.runs WHERE id = :id",
        id=run["metadata"]["uid"],
    )
    await cluster.delete_run()
    async with operating(replace(settings, namespaces=("default",))):
        await until(lambda: _ended(database, run["metadata"]["uid"]))
    states = await database.values("SELECT name, state FROM triage.runs ORDER BY name, state")
    assert states == [("other", "active"), ("other", "active"), ("tokens", "cancelled")]
