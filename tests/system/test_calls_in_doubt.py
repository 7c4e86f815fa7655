"""Attempts that die inside a tool of each kind: the effect is had once, or named as in doubt until a person decides."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.own_agents import own_agent
from support.sight import Json
from support.site import Site
from support.system import System
from triage_contract.states import Phase

pytestmark = pytest.mark.asyncio(loop_scope="session")

RUN = "acting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """A run of an agent with one effect, and the files that tell of it."""

    site: Site
    folder: Path

    async def start(self, kind: str = "", *, effect: str = "first", **agent: Any) -> None:
        """Start the run, and wait until it is inside its tool."""
        variables = {"KIND": kind, "EFFECT": effect, "FOLDER": str(self.folder)}
        await self.site.create_agent("acting", **own_agent("effecting", **variables), **agent)
        await self.site.create_run(RUN, agentRef={"name": "acting"})
        await self.site.container(RUN)
        await self.inside(1)

    async def inside(self, epoch: int) -> None:
        """Wait until an attempt is in the middle of its tool."""
        async with asyncio.timeout(60):
            while str(epoch) not in self.lines("inside"):
                await asyncio.sleep(0.02)

    def let_go(self) -> None:
        """Let the tool go on, in this attempt and in all that follow."""
        (self.folder / "go").touch()

    def lines(self, file: str) -> list[str]:
        """Give the attempts that left a mark in a file."""
        path = self.folder / file
        return path.read_text().split() if path.exists() else []

    async def parked(self) -> Json:
        """Wait until the run is parked, and give the call that it waits for."""
        status = await self.site.phase(RUN, Phase.WAITING)
        await self.site.held_up(RUN, "InDoubt")
        await self.site.told(RUN, "InDoubt")
        (call,) = status["waitingFor"]
        await self.site.pods.until(_none_runs, "no pod of it runs")
        return dict(call)

    async def decide(self, call: Json, action: str, **more: Any) -> None:
        """Decide about a call as the status shows it."""
        decision = {"call": call["call"], "attempt": call["attempt"], "action": action, **more}
        await self.site.change("TriageRun", RUN, decisions=[decision])

    async def succeeded(self, attempts: int) -> None:
        """Wait for the run's success in its so-manieth attempt."""
        status = await self.site.ended(RUN)
        assert status["phase"] == Phase.SUCCEEDED, status
        assert (status["attempt"], status["waitingFor"]) == (attempts, [])
        assert await self.site.answers(RUN) == 1


def _none_runs(pods: Mapping[str, Json]) -> bool | None:
    return all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in pods.values()) or None


@pytest_asyncio.fixture(loop_scope="session")
async def acting(site: Site, tmp_path: Path) -> AsyncIterator[Acting]:
    acting = Acting(site=site, folder=tmp_path)
    yield acting
    acting.let_go()


@pytest.mark.parametrize(
    ("action", "effects"), [("Done", ["1"]), ("RunAgain", ["1", "2"]), ("Fail", ["1"])], ids=str
)
async def test_an_undeclared_tool_parks_and_a_person_decides_once(
    acting: Acting, action: str, effects: list[str]
) -> None:
    await acting.start()
    await acting.site.kill(RUN)
    call = await acting.parked()
    assert (call["tool"], call["attempt"], call["arguments"]) == ("act", 1, "{}")
    condition = await acting.site.agent_condition("acting", "ToolsDeclared")
    assert condition["status"] == "False"
    assert "act. " in condition["message"]
    acting.let_go()
    await acting.decide(call, action)
    if action == "Fail":
        assert (await acting.site.ended(RUN))["phase"] == Phase.FAILED
        assert "A person decided" in await acting.site.finished_because(RUN)
    else:
        await acting.succeeded(2)
        await acting.site.told(RUN, "Lost", "InDoubt", "Decided", "Resuming", "Completed")
    assert acting.lines("effects") == effects


@pytest.mark.parametrize(("in_doubt", "effects"), [("Retry", ["1", "2"]), ("Fail", ["1"])], ids=str)
async def test_an_agent_says_what_becomes_of_an_undeclared_call(
    acting: Acting, in_doubt: str, effects: list[str]
) -> None:
    await acting.start(resume={"inDoubt": in_doubt})
    acting.let_go()
    # It returns only after a look for the file: killed at once, it is still inside.
    container = await acting.site.container(RUN)
    container.signal_main(signal.SIGKILL)
    if in_doubt == "Fail":
        assert "resume.inDoubt is Fail" in await acting.site.finished_because(RUN)
        assert (await acting.site.ended(RUN))["phase"] == Phase.FAILED
    else:
        await acting.succeeded(2)
    assert acting.lines("effects") == effects


@pytest.mark.parametrize(
    ("effect", "effects"), [("first", ["1"]), ("later", ["2"])], ids=["it happened", "it did not happen"]
)
async def test_the_outside_world_of_a_dead_process_settles_its_call(
    acting: Acting, effect: str, effects: list[str]
) -> None:
    await acting.start("Reconcile", effect=effect)
    await acting.site.kill(RUN)
    acting.let_go()
    await acting.succeeded(2)
    assert acting.lines("effects") == effects
    assert acting.lines("asked") == ["2"]


async def test_what_its_outside_world_does_not_know_waits_for_a_person(
    system: System, acting: Acting
) -> None:
    (acting.folder / "forgetful").touch()
    await acting.start("Reconcile")
    await acting.site.kill(RUN)
    call = await acting.parked()
    assert "could not tell" in call["why"]
    # Nothing of it is in the operator's memory.
    await system.cluster.operator.kill()
    await acting.decide(call, "Done", result={"acted_in": "a dream"})
    await system.cluster.operator.start()
    await acting.succeeded(3)
    assert acting.lines("effects") == ["1"]


async def test_what_did_not_happen_waits_while_its_process_may_be_alive(acting: Acting) -> None:
    await acting.start("Reconcile", effect="later")
    process = await acting.site.container(RUN)
    pod = (await acting.site.pod(RUN))["metadata"]["name"]
    process.signal_main(signal.SIGSTOP)
    await acting.site.delete("Pod", pod, grace_seconds=0)
    call = await acting.parked()
    assert "may still be alive" in call["why"]
    assert acting.lines("asked") == ["2"]
    acting.let_go()
    await acting.decide(call, "RunAgain")
    await acting.succeeded(3)
    assert acting.lines("effects") == ["3"]


async def test_a_zombie_changes_nothing_about_a_call_that_was_decided(system: System, acting: Acting) -> None:
    await acting.start()
    zombie = await acting.site.container(RUN)
    kubelet = acting.site.cluster.kubelet
    node = (await acting.site.pod(RUN))["spec"]["nodeName"]
    await kubelet.lose(node, signal.SIGSTOP)
    try:
        await kubelet.declare_unreachable(node)
        status = await acting.site.phase(RUN, Phase.WAITING)
        await acting.decide(status["waitingFor"][0], "Done", result={"acted_in": "1"})
        await acting.succeeded(2)
        acting.let_go()
    finally:
        await kubelet.recover(node)
    await zombie.reap()
    assert zombie.exit_code == 84  # fenced
    rows = await system.values(
        "SELECT state, settled_by, result ->> 'acted_in' FROM triage.tool_calls WHERE session_id = :session",
        session=f"run-{acting.site.uid(RUN)}",
    )
    assert rows == [("settled", "decision", "1")]


async def test_a_decision_that_comes_while_the_tool_runs_waits_for_its_attempt(
    system: System, acting: Acting
) -> None:
    await acting.start()
    [(key,)] = await system.values(
        "SELECT call_id FROM triage.tool_calls WHERE session_id = :session",
        session=f"run-{acting.site.uid(RUN)}",
    )
    await acting.decide({"call": key, "attempt": 1}, "Done")
    await acting.site.until(
        RUN,
        lambda run: run["status"].get("observedGeneration") == run["metadata"]["generation"] or None,
        "is seen with its decision",
    )
    await acting.site.kill(RUN)
    await acting.succeeded(2)
    assert acting.lines("effects") == ["1"]
