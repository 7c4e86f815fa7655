"""Agents that were changed between a loss and the resume: what ADK cannot go on with is refused, nothing is dropped."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App

from support.stage import ScriptedLlm, Stage, by_turn, call, say
from triage_contract.states import Outcome

pytestmark = pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")


class Effect:
    """An effect that gets stuck the first time."""

    def __init__(self) -> None:
        self.ran = 0
        self.stuck = asyncio.Event()

    async def do(self) -> str:
        self.ran += 1
        if self.ran == 1:
            self.stuck.set()
            await asyncio.Event().wait()
        return "did"


def worker(effect: Effect, name: str = "worker", **agent: Any) -> LlmAgent:
    model = ScriptedLlm(script=by_turn(call("do"), say("Done.")))
    return LlmAgent(name=name, model=model, tools=[effect.do], **agent)


def sequence(step: BaseAgent, name: str = "steps") -> SequentialAgent:
    return SequentialAgent(name=name, sub_agents=[step])


def transferring(sub: LlmAgent) -> LlmAgent:
    model = ScriptedLlm(script=by_turn(call("transfer_to_agent", agent_name=sub.name)))
    return LlmAgent(name="root", model=model, sub_agents=[sub])


Tree = Callable[[Effect], BaseAgent]

REFUSED: dict[str, tuple[Tree, Tree, str]] = {
    "a renamed root": (
        worker,
        lambda effect: worker(effect, "other"),
        "the run began with 'worker' (llm) as its root, and now that is 'other' (llm)",
    ),
    "a renamed sequence": (
        lambda effect: sequence(worker(effect)),
        lambda effect: sequence(worker(effect), "others"),
        "the run began with 'steps' (sequential) as its root, and now that is 'others' (sequential)",
    ),
    "a root of another kind": (
        lambda effect: sequence(worker(effect), "root"),
        lambda effect: worker(effect, "root"),
        "the run began with 'root' (sequential) as its root, and now that is 'root' (llm)",
    ),
    "a renamed sequence in a sequence": (
        lambda effect: sequence(sequence(worker(effect)), "root"),
        lambda effect: sequence(sequence(worker(effect), "others"), "root"),
        "agent 'steps' was at work when the run was lost, and is not among the agents any more",
    ),
    "a renamed step": (
        lambda effect: sequence(worker(effect)),
        lambda effect: sequence(worker(effect, "other")),
        "agent 'worker' was at work when the run was lost, and is not among the agents any more",
    ),
    "a renamed target of a transfer": (
        lambda effect: transferring(worker(effect)),
        lambda effect: transferring(worker(effect, "other")),
        "agent 'worker' was at work when the run was lost, and is not among the agents any more",
    ),
}


@pytest.mark.parametrize(("before", "after", "message"), REFUSED.values(), ids=REFUSED)
async def test_what_a_resume_would_not_find_is_refused_until_it_is_back(
    stage: Stage, before: Tree, after: Tree, message: str
) -> None:
    effect = Effect()
    await stage.lose(App(name="app", root_agent=before(effect)), effect.stuck)
    events = await stage.stored()
    ending = await stage.attempt(App(name="app", root_agent=after(effect)))
    assert (ending.outcome, ending.message) == (Outcome.BAD_CONFIGURATION, message)
    assert await stage.stored() == events
    assert effect.ran == 1
    assert (await stage.attempt(App(name="app", root_agent=before(effect)))).outcome is Outcome.FINISHED
    assert effect.ran == 2


async def test_other_instructions_and_more_tools_do_no_harm(stage: Stage) -> None:
    effect = Effect()

    def more() -> None:
        raise AssertionError("nobody calls it")

    await stage.lose(App(name="app", root_agent=worker(effect)), effect.stuck)
    changed = worker(effect, instruction="Hurry.")
    changed.tools.append(more)
    assert (await stage.attempt(App(name="app", root_agent=changed))).outcome is Outcome.FINISHED
    assert effect.ran == 2
