"""A running attempt that comes near its memory limit, as its node and the API server take it."""

from copy import deepcopy
from typing import Any

import pytest

from support.databases import Database
from support.operated import RUNNING, Cluster, Json, operating, settings_for, until
from support.stub_agent import StubAgent, StubAgents
from triage_contract.states import Outcome
from triage_local.apiserver.faults import Answer

MEBIBYTE = 1024**2


async def _give(cluster: Cluster, pod: Json, memory: str) -> None:
    """Let the pod's node say that the agent container has another memory limit now."""
    given = deepcopy(pod)
    (container,) = given["spec"]["containers"]
    container["resources"]["limits"]["memory"] = memory
    await cluster.set_pod(given, "Running", RUNNING)


async def _start(cluster: Cluster, agents: StubAgents) -> tuple[Json, StubAgent]:
    """Have an attempt of 100 MiB at work."""
    await cluster.create_run()
    return await agents.start(1)


async def _resources(cluster: Cluster, epoch: int = 1) -> dict[str, Any]:
    (container,) = (await cluster.pod_of(epoch))["spec"]["containers"]
    resources: dict[str, Any] = container["resources"]
    return resources


async def _asked(cluster: Cluster, memory: str) -> None:
    async def found() -> bool | None:
        return True if (await _resources(cluster))["limits"]["memory"] == memory else None

    await until(found)


async def _handoff(agent: StubAgent) -> str:
    return await until(lambda: agent.heartbeat(80 * MEBIBYTE))


@pytest.fixture(autouse=True)
async def _agent(cluster: Cluster) -> None:
    await cluster.create_agent(resources={"limits": {"memory": "100Mi"}})


async def test_what_a_node_gives_is_recorded_counted_and_shown(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    async with operating(settings_for(cluster, database)):
        pod, agent = await _start(cluster, agents)
        await agent.heartbeat(80 * MEBIBYTE)
        await _asked(cluster, "150Mi")
        await _give(cluster, pod, "150Mi")

        async def shown() -> bool | None:
            (attempt,) = (await cluster.run())["status"]["attempts"]
            return True if attempt["memoryLimit"] == "150Mi" else None

        await until(shown)
        assert await agent.heartbeat(80 * MEBIBYTE) is None
        # A step further, by the same factor.
        await agent.heartbeat(120 * MEBIBYTE)
        await _asked(cluster, "225Mi")
        messages = await cluster.told("RaisingMemory", 2)
    assert (await _resources(cluster))["requests"] == {"memory": "225Mi"}
    assert sorted(message.partition(": ")[2] for message in messages) == [
        "its limit is to be raised from 100Mi to 150Mi.",
        "its limit is to be raised from 150Mi to 225Mi.",
    ]
    raises = "SELECT value FROM triage.totals WHERE name = 'memory_raises'"
    assert await database.values(raises) == [(1.0,)]


async def test_a_new_operator_goes_on_with_what_the_last_one_asked_for(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    async with operating(settings_for(cluster, database)):
        pod, agent = await _start(cluster, agents)
        await agent.heartbeat(80 * MEBIBYTE)
        await _asked(cluster, "150Mi")
    asked = await cluster.pod_of(1)
    async with operating(settings_for(cluster, database)):
        await cluster.told("RaisingMemory", 2)
        assert (await cluster.pod_of(1))["metadata"]["generation"] == asked["metadata"]["generation"]
        await _give(cluster, pod, "150Mi")

        async def recorded() -> bool | None:
            rows = await database.values("SELECT memory_limit_bytes FROM triage.attempts")
            return True if rows == [(150 * MEBIBYTE,)] else None

        await until(recorded)


@pytest.mark.parametrize("status", [403, 404])
async def test_an_api_server_that_resizes_nothing_moves_the_run_to_a_bigger_pod(
    status: int, cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    cluster.server.faults.answer(Answer(method="PATCH", target="/resize", status=status))
    async with operating(settings_for(cluster, database)):
        _, agent = await _start(cluster, agents)
        assert await _handoff(agent) == "short_of_memory"
        await agent.release()
        assert (await _resources(cluster, 2))["limits"] == {"memory": "150Mi"}
        (first, _) = (await cluster.run_in("Recovering"))["status"]["attempts"]
    assert (first["outcome"], first["cause"]) == (Outcome.HANDED_OFF, "short_of_memory")
    assert await database.values("SELECT counted FROM triage.attempts WHERE epoch = 1") == [(False,)]


async def test_a_node_that_does_not_answer_has_its_time_and_no_more(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    async with operating(settings_for(cluster, database, raise_seconds=0.3)):
        _, agent = await _start(cluster, agents)
        assert await _handoff(agent) == "short_of_memory"
        (message,) = await cluster.told("HandingOff")
    assert message.endswith("Its node does not answer.")
    assert (await _resources(cluster))["limits"] == {"memory": "150Mi"}


async def test_a_quota_that_would_refuse_the_next_pod_as_well_is_told_and_waited_out(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    words = 'pods "tokens" is forbidden: exceeded quota: small, requested: requests.memory=50Mi'
    cluster.server.faults.answer(Answer(method="PATCH", target="/resize", status=403, message=words))
    async with operating(settings_for(cluster, database)):
        _, agent = await _start(cluster, agents)
        await agent.heartbeat(80 * MEBIBYTE)
        (message,) = await cluster.told("MemoryRefused")
        assert words in message
        conditions = (await cluster.run_in("Running"))["status"]["conditions"]
        assert ("Progressing", "True", "MemoryRefused") in [
            (each["type"], each["status"], each["reason"]) for each in conditions
        ]
        assert await agent.heartbeat(80 * MEBIBYTE) is None
        await agent.answer("Done.")
        await agent.finish()
        await cluster.run_in("Succeeded")
