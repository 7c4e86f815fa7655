"""What the operator says of agents, and what it does about nodes that are about to go."""

from dataclasses import replace
from typing import Any

import pytest
from kubernetes.aio.client import CoreV1Api, CustomObjectsApi, V1Node, V1NodeSpec, V1ObjectMeta

from support.databases import Database
from support.operated import MERGE, NAMESPACE, Cluster, Json, operating, settings_for, until
from support.stub_agent import StubAgents
from triage_contract.names import GROUP, VERSION
from triage_local.apiserver.faults import Answer
from triage_operator.settings import Settings


async def _agent_status(cluster: Cluster, **wanted: object) -> Json:
    async def found() -> Json | None:
        agent = await CustomObjectsApi(cluster.client).get_namespaced_custom_object(
            GROUP, VERSION, NAMESPACE, "triageagents", "default"
        )
        assert isinstance(agent, dict)
        status: Json = agent.get("status") or {}
        return status if wanted.items() <= status.items() else None

    return await until(found)


async def test_an_agents_status_tells_whether_it_is_ready_and_how_many_of_its_runs_are_at_work(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        status = await _agent_status(cluster, running=0, image="agent:1")
        assert [(one["type"], one["status"]) for one in status["conditions"]] == [("Ready", "True")]
        await cluster.create_run()
        await cluster.pod_of(1)
        await _agent_status(cluster, running=1)
        await agents.finish(1)
        await _agent_status(cluster, running=0)
        await cluster.change_agent(image="agent:2")
        await _agent_status(cluster, image="agent:2")


async def test_an_agent_whose_pods_cannot_be_made_is_not_ready(cluster: Cluster, database: Database) -> None:
    await cluster.create_agent(podTemplate={"spec": {"restartPolicy": "Always"}})
    async with operating(settings_for(cluster, database)):
        status = await _agent_status(cluster, observedGeneration=1)
    (ready,) = status["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "BadAgent")
    assert "restartPolicy" in ready["message"]


@pytest.mark.parametrize("namespaces", [(), (NAMESPACE,)], ids=["everywhere", "in one namespace"])
@pytest.mark.parametrize(
    "change",
    [
        {"unschedulable": True},
        {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]},
    ],
    ids=["cordoned", "tainted by an autoscaler"],
)
async def test_an_attempt_on_a_node_that_is_about_to_go_is_asked_to_hand_off_before_it_is_evicted(
    cluster: Cluster,
    database: Database,
    agents: StubAgents,
    namespaces: tuple[str, ...],
    change: Json,
) -> None:
    await _create_node(cluster)
    await cluster.create_agent()
    async with operating(replace(_without_sweeps(cluster, database), namespaces=namespaces)):
        await cluster.create_run()
        _, agent = await agents.start(1)
        await agent.heartbeat()
        await _patch_node(cluster, change)
        assert await until(agent.heartbeat) == "drain"
        await agent.release()
        await cluster.pod_of(2)


async def test_a_node_that_was_tainted_while_no_operator_was_there_is_left(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await _create_node(cluster)
    await cluster.create_agent()
    settings = _without_sweeps(cluster, database)
    async with operating(settings):
        await cluster.create_run()
        _, agent = await agents.start(1)
        await agent.heartbeat()
    await _patch_node(cluster, {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]})
    assert await agent.heartbeat() is None
    async with operating(settings):
        assert await until(agent.heartbeat) == "drain"


async def test_an_operator_that_may_not_read_nodes_says_so_and_works_without(
    cluster: Cluster, database: Database, agents: StubAgents, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.server.faults.answer(Answer(method="POST", target="/selfsubjectaccessreviews", status=403))
    cluster.server.faults.answer(Answer(method="GET", target="/nodes", status=403))
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await agents.finish(1)
        await cluster.run_in("Succeeded")
    assert [record for record in caplog.records if "nodes may not be watched" in record.message]


async def test_a_node_that_takes_pods_again_is_not_left(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await _create_node(cluster, unschedulable=True)
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        _, agent = await agents.start(1)
        assert await until(agent.heartbeat) == "drain"
        await _patch_node(cluster, {"unschedulable": False})
        await agent.release()
        _, successor = await agents.start(2)

        async def at_work() -> Json | None:
            run = await cluster.run()
            return run if "Attempt 2 is at work" in str(run["status"]["conditions"]) else None

        await until(at_work)
        assert await successor.heartbeat() is None


async def _create_node(cluster: Cluster, **spec: Any) -> None:
    node = V1Node(metadata=V1ObjectMeta(name="node-1"), spec=V1NodeSpec(**spec))
    await CoreV1Api(cluster.client).create_node(node)


async def _patch_node(cluster: Cluster, spec: Json) -> None:
    await CoreV1Api(cluster.client).patch_node("node-1", {"spec": spec}, _content_type=MERGE)


def _without_sweeps(cluster: Cluster, database: Database) -> Settings:
    """Settings of an operator that learns of a node by its watch, or not at all."""
    settings = settings_for(cluster, database)
    return replace(settings, reconciling=replace(settings.reconciling, sweep_seconds=3600.0))
