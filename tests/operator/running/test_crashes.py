"""The operator dies between any two steps, and the next one goes on."""

import asyncio
from collections import Counter

import pytest

from support.databases import Database
from support.operated import Cluster, operating, settings_for
from support.stub_agent import StubAgents
from triage_operator.steps import Step

CRASH_IN_A_LOSS = [
    Step.FENCE_CLOSED,
    Step.ATTEMPT_ENDED,
    Step.ATTEMPT_RECORDED,
    Step.POD_CREATED,
    Step.POD_RECORDED,
    Step.RUN_ENDED,
    Step.STATUS_WRITTEN,
]


class Crash(BaseException):
    """Ends the process: nothing catches it, and nothing that would come after it happens."""


class Crashing:
    """Lets operators die right after a step, each time for as long as it has lives to take."""

    def __init__(self, step: Step, times: int) -> None:
        self.step = step
        self.left = times

    async def checkpoint(self, step: Step) -> None:
        if step is self.step and self.left > 0:
            self.left -= 1
            raise Crash


@pytest.mark.parametrize("step", CRASH_IN_A_LOSS)
async def test_a_run_survives_that_its_operators_die_after_a_step(
    step: Step, cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    """Of every two operators the first dies at the step: at the start, at the loss, at the resume, at the end."""
    crashing = Crashing(step, times=2)
    await cluster.create_agent()
    await cluster.create_run()
    started = asyncio.create_task(_play(cluster, agents))
    while not started.done():
        try:
            async with operating(settings_for(cluster, database), crashing.checkpoint) as task:
                await asyncio.wait((task, started), return_when=asyncio.FIRST_COMPLETED, timeout=15)
        except BaseExceptionGroup as group:
            if not group.subgroup(Crash):
                raise
    await started
    assert crashing.left < 2, "no operator died"
    status = (await cluster.run())["status"]
    assert [one["outcome"] for one in status["attempts"]] == ["lost", "finished"]
    pods = [pod["metadata"]["labels"]["triage-operator.dev/epoch"] for pod in await cluster.pods()]
    assert Counter(pods) == {"1": 1, "2": 1}
    counters = set(
        await database.values(
            "SELECT name, sum(value)::int FROM triage.totals WHERE name IN"
            " ('attempts', 'losses', 'resumes', 'runs_ended') GROUP BY name"
        )
    )
    assert counters == {("attempts", 2), ("losses", 1), ("resumes", 1), ("runs_ended", 1)}


async def _play(cluster: Cluster, agents: StubAgents) -> None:
    pod, agent = await agents.start(1)
    await agent.die()
    await cluster.end_pod(pod, 137)
    await agents.finish(2)
    await cluster.run_in("Succeeded")
