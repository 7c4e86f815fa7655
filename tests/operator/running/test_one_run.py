"""The operator as a whole, on an API server and a database, with agents that only the database knows."""

from support.databases import Database
from support.operated import Cluster, operating, settings_for
from support.stub_agent import StubAgents


async def test_a_run_gets_a_pod_and_succeeds_when_its_agent_has_finished(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        run = await cluster.create_run()
        pod = await cluster.pod_of(1)
        assert pod["metadata"]["ownerReferences"][0]["uid"] == run["metadata"]["uid"]
        agent = await agents.in_pod(pod)
        await cluster.start_pod(pod)
        await agent.claim()
        await agent.work()
        await agent.file_issue(41)
        await agent.answer("Filed as 41.")
        await agent.finish()
        status = (await cluster.run_in("Succeeded"))["status"]
    assert status["output"] == "Filed as 41."
    assert status["issue"] == "41"
    assert status["attempts"][0]["outcome"] == "finished"
    assert status["resumes"] == 0
