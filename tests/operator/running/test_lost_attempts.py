"""Losses, as the operator sees them: by the pod, by the database, or by what is no longer there."""

import dataclasses
import time

from support.databases import Database
from support.operated import Cluster, Json, looked, operating, settings_for, until
from support.stub_agent import StubAgents
from triage_local.apiserver.faults import Answer


async def test_a_killed_attempt_is_followed_by_another_and_counted(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await agent.die()
        await cluster.end_pod(pod, 137)
        await agents.finish(2)
        status = (await cluster.run_in("Succeeded"))["status"]
    assert status["resumes"] == 1
    assert status["lastCause"] == "sigkill"
    assert [one["outcome"] for one in status["attempts"]] == ["lost", "finished"]
    assert status["recoverySeconds"] >= 0
    totals = await database.values("SELECT name, labels ->> 'cause', value FROM triage.totals ORDER BY 1, 2")
    assert ("losses", "sigkill", 1.0) in totals
    assert ("resumes", "sigkill", 1.0) in totals
    assert ("recovery_seconds_bucket", "sigkill", 1.0) in totals


async def test_an_attempt_out_of_memory_gets_more_of_it(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent(resources={"limits": {"memory": "100Mi"}})
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await agent.die()
        await cluster.end_pod(pod, 137, "OOMKilled")
        second = await cluster.pod_of(2)
    assert second["spec"]["containers"][0]["resources"]["limits"]["memory"] == "150Mi"


async def test_an_attempt_that_hands_off_is_followed_before_its_pod_is_gone(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    # Nor a look nor a sweep sees it before the test's time is up.
    settings = settings_for(cluster, database)
    slow = dataclasses.replace(settings.reconciling, look_seconds=600, sweep_seconds=600)
    async with operating(dataclasses.replace(settings, reconciling=slow)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await cluster.evict_pod(pod)
        await agent.release()
        await cluster.pod_of(2)
        status = (await cluster.run_in("Recovering"))["status"]
        assert pod["metadata"]["name"] in [one["metadata"]["name"] for one in await cluster.pods()]
        await agent.die()
    assert status["attempts"][0]["cause"] == "drain"
    assert status["attempts"][0]["outcome"] == "handed_off"


async def test_a_process_that_lets_go_of_its_lock_is_lost_before_its_kubelet_says_so(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    # It would be missed for its heartbeats only after the test's time is up.
    async with operating(settings_for(cluster, database, heartbeat_lapse_seconds=600)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await looked(database)
        await agent.die()
        await cluster.pod_of(2)
        await cluster.end_pod(pod, 137)

        async def filled() -> Json | None:
            first: Json = (await cluster.run())["status"]["attempts"][0]
            return first if "cause" in first else None

        assert (await until(filled))["cause"] == "sigkill"
    totals = await database.values(
        "SELECT name, labels ->> 'cause', value FROM triage.totals"
        " WHERE name IN ('attempts', 'losses', 'resumes') ORDER BY 1"
    )
    assert totals == [(name, "sigkill", 1.0) for name in ("attempts", "losses", "resumes")]


async def test_a_pod_that_vanished_while_no_operator_ran_is_missed_by_the_next_one(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await cluster.run_in("Running")
    await agent.die()
    await cluster.remove_pod(pod)
    async with operating(settings_for(cluster, database)):
        await agents.finish(2)
        status = (await cluster.run_in("Succeeded"))["status"]
    assert status["lastCause"] == "vanished"


async def test_a_deletion_that_no_watch_told_is_found_by_the_sweep(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await cluster.run_in("Running")
        cluster.server.faults.lose_deleted("pods", 1)
        cluster.server.faults.freeze_watches("pods")
        await cluster.remove_pod(pod)
        await cluster.pod_of(2)
        await agent.die()


async def test_an_exit_with_zero_is_no_success_while_the_invocation_is_unfinished(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await agent.die()
        await cluster.end_pod(pod, 0, "Completed")
        await cluster.pod_of(2)
        status = (await cluster.run_in("Recovering"))["status"]
    assert status["lastCause"] == "exit0_unfinished"


async def test_a_run_whose_last_attempt_died_after_its_answer_is_complete_without_another(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await agent.answer("Done.")
        await agent.die()
        await cluster.end_pod(pod, 137)
        status = (await cluster.run_in("Succeeded"))["status"]
        assert len(await cluster.pods()) == 1
    assert status["output"] == "Done."
    [(reason, refused)] = await database.values(
        "SELECT labels ->> 'reason', value FROM triage.totals WHERE name = 'resumes_refused'"
    )
    assert (reason, refused) == ("Completed", 1.0)


async def test_a_busy_api_server_is_asked_again_when_it_said(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        cluster.server.faults.answer(
            Answer(method="POST", target="/pods", status=429, retry_after_seconds=1, left=1)
        )
        asked_at = time.monotonic()
        await cluster.create_run()
        await cluster.pod_of(1)
        assert time.monotonic() - asked_at >= 1.0
