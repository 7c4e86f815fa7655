"""What stands in the way of a run is said in its conditions, and nothing is lost."""

import asyncio
import dataclasses
from pathlib import Path

import aiohttp

from support.databases import Database
from support.operated import Cluster, Json, operating, settings_for, until
from support.stub_agent import StubAgents
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_local.apiserver.faults import Answer
from triage_local.postgres import PostgresServer


async def _held_up_by(cluster: Cluster, reason: str, name: str = "tokens") -> Json:
    async def found() -> Json | None:
        for condition in (await cluster.run(name)).get("status", {}).get("conditions", ()):
            if condition["type"] == "Progressing" and condition["reason"] == reason:
                return dict(condition)
        return None

    return await until(found)


async def test_a_run_waits_for_its_agent_and_starts_when_it_is_there(
    cluster: Cluster, database: Database
) -> None:
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        condition = await _held_up_by(cluster, "UnknownAgent")
        assert condition["status"] == "False"
        assert "default/default" in condition["message"]
        await cluster.create_agent()
        await cluster.pod_of(1)


async def test_a_foreign_pod_under_our_name_is_left_alone_and_another_name_taken(
    cluster: Cluster, database: Database
) -> None:
    run = await cluster.create_run()
    name = f"tokens-{run['metadata']['uid'][:5]}-a1"
    await cluster.create_pod(name)
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        pod = await cluster.pod_of(1)
    assert pod["metadata"]["name"] == f"{name}-2"
    [(recorded,)] = await database.values("SELECT pod FROM triage.attempts")
    assert recorded == f"{name}-2"


async def test_a_refused_pod_is_tried_again_and_the_api_servers_words_are_shown(
    cluster: Cluster, database: Database
) -> None:
    await cluster.create_agent()
    cluster.server.faults.answer(Answer(method="POST", target="/pods", status=403, left=1))
    async with operating(settings_for(cluster, database, refusal_retry_seconds=0.5)):
        await cluster.create_run()
        condition = await _held_up_by(cluster, "PodRefused")
        assert "fault on demand" in condition["message"]
        await cluster.pod_of(1)
        await _held_up_by(cluster, "Pending")


async def test_a_cancelled_run_ends_and_its_pod_goes(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await agents.start(1)
        await cluster.change_run(cancel=True)
        await cluster.run_in("Cancelled")

        async def deleted() -> bool | None:
            pods = [one for one in await cluster.pods() if "deletionTimestamp" not in one["metadata"]]
            return None if pods else True

        await until(deleted)
        assert await database.values("SELECT token FROM triage.fences") == [(None,)]


async def test_a_suspended_run_hands_off_and_goes_on_when_it_may(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        _, agent = await agents.start(1)
        await cluster.change_run(suspend=True)
        assert await until(agent.heartbeat) == "suspended"
        await agent.release()
        await agent.die()
        await cluster.run_in("Suspended")
        await cluster.change_run(suspend=False)
        await agents.finish(2)
        await cluster.run_in("Succeeded")


async def test_a_finished_run_goes_when_its_time_to_live_is_over(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run(ttlSecondsAfterFinished=1)
        await agents.finish(1)
        await cluster.run_in("Succeeded")

        async def gone() -> bool | None:
            return None if await cluster.runs() else True

        await until(gone)


async def test_a_database_that_is_down_at_the_start_is_said_and_waited_for(
    cluster: Cluster, tmp_path: Path
) -> None:
    with PostgresServer(tmp_path) as server:
        url = DatabaseUrl.parse(server.create_database())
        await migrate(url)
        server.stop(immediate=True)
        engine = open_engine(url, application="test")
        await cluster.create_agent()
        async with operating(settings_for(cluster, Database(url=url, engine=engine))):
            await cluster.create_run()
            condition = await _held_up_by(cluster, "DatabaseUnreachable")
            assert "@" not in condition["message"]
            server.start()
            await cluster.pod_of(1)
            await _held_up_by(cluster, "Pending")
        await engine.dispose()


async def test_a_database_that_is_away_for_a_while_fails_no_run(cluster: Cluster, tmp_path: Path) -> None:
    with PostgresServer(tmp_path) as server:
        url = DatabaseUrl.parse(server.create_database())
        await migrate(url)
        engine = open_engine(url, application="test")
        database = Database(url=url, engine=engine)
        agents = StubAgents(cluster, database)
        await cluster.create_agent()
        settings = settings_for(cluster, database, heartbeat_lapse_seconds=3.0)
        async with operating(settings):
            await cluster.create_run()
            _, agent = await agents.start(1)
            await cluster.run_in("Running")
            server.stop(immediate=True)
            await asyncio.sleep(3.5)  # longer than the lapse: heartbeats that nobody can see do not lapse
            server.start()
            await asyncio.sleep(1.5)
            await agent.heartbeat()
            await asyncio.sleep(2.0)
            assert len(await cluster.pods()) == 1
            await agent.answer("Done.")
            await agent.finish()
            status = (await cluster.run_in("Succeeded"))["status"]
        await agents.close()
        await engine.dispose()
    assert status["resumes"] == 0


async def test_a_status_edited_by_hand_changes_nothing(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await agents.start(1)
        await cluster.run_in("Running")
        await cluster.edit_status(phase="Succeeded", attempt=7, issue="99")
        await cluster.run_in("Running")
        status = (await cluster.run())["status"]
        assert status["attempt"] == 1
        assert "issue" not in status


async def test_metrics_and_health_are_served(
    cluster: Cluster, database: Database, agents: StubAgents, unused_tcp_port: int
) -> None:
    await cluster.create_agent()
    settings = settings_for(cluster, database)
    serving = dataclasses.replace(settings.serving, port=unused_tcp_port)
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with (
        operating(dataclasses.replace(settings, serving=serving)),
        aiohttp.ClientSession() as session,
    ):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await agent.die()
        await cluster.end_pod(pod, 137)
        await agents.finish(2)
        await cluster.run_in("Succeeded")
        async with session.get(f"{url}/metrics") as response:
            lines = (await response.text()).splitlines()
        for path in ("healthz", "readyz"):
            async with session.get(f"{url}/{path}") as response:
                assert (response.status, await response.text()) == (200, "ok\n")
    assert 'triage_losses_total{agent="default",cause="sigkill",namespace="default"} 1.0' in lines
    assert 'triage_resumes_total{agent="default",cause="sigkill",namespace="default"} 1.0' in lines
    assert 'triage_recovery_seconds_count{agent="default",cause="sigkill",namespace="default"} 1.0' in lines
    assert 'triage_runs{agent="default",namespace="default",phase="Succeeded"} 1.0' in lines
    assert "triage_leader 1.0" in lines
