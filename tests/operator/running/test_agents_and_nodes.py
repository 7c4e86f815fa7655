"""What the operator says of agents, and what it does about nodes that are about to go."""

from kubernetes.aio.client import CoreV1Api, CustomObjectsApi, V1Node, V1NodeSpec, V1ObjectMeta

from support.databases import Database
from support.operated import NAMESPACE, Cluster, Json, operating, settings_for, until
from support.stub_agent import StubAgents
from triage_contract.names import GROUP, VERSION


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


async def test_an_attempt_on_a_cordoned_node_is_asked_to_hand_off_before_it_is_evicted(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    node = V1Node(metadata=V1ObjectMeta(name="node-1"), spec=V1NodeSpec(unschedulable=True))
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        _, agent = await agents.start(1)
        await CoreV1Api(cluster.client).create_node(node)
        assert await until(agent.heartbeat) == "drain"
        await agent.release()
        await cluster.pod_of(2)


async def test_a_node_that_takes_pods_again_is_not_left(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    nodes = CoreV1Api(cluster.client)
    await nodes.create_node(V1Node(metadata=V1ObjectMeta(name="node-1"), spec=V1NodeSpec(unschedulable=True)))
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        _, agent = await agents.start(1)
        assert await until(agent.heartbeat) == "drain"
        await nodes.patch_node("node-1", {"spec": {"unschedulable": False}})
        await agent.release()
        _, successor = await agents.start(2)

        async def at_work() -> Json | None:
            run = await cluster.run()
            return run if "Attempt 2 is at work" in str(run["status"]["conditions"]) else None

        await until(at_work)
        assert await successor.heartbeat() is None
