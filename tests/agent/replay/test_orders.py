"""What a stored answer orders: carried out by the process that made it, or once by the next."""

from collections.abc import Callable
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from support.dying import Mortal, mortal
from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, say, stage
from triage_contract.states import Outcome

__all__ = ["mortal", "stage"]

pytestmark = pytest.mark.filterwarnings("ignore:SequentialAgent:DeprecationWarning")


async def test_an_agent_that_hands_over_to_itself_is_asked_again(stage: Stage) -> None:
    model = ScriptedLlm(script=by_turn(call("transfer_to_agent", agent_name="docs"), say("Done.")))
    sub = LlmAgent(name="sub", model=ScriptedLlm(script=by_turn(say("No."))))
    step = LlmAgent(name="docs", model=model, sub_agents=[sub])
    root = SequentialAgent(name="pipe", sub_agents=[step])
    assert (await stage.attempt(App(name="app", root_agent=root))).outcome is Outcome.FINISHED
    assert len(model.asked) == 2


def told(event: dict[str, Any]) -> bool:
    return "function_response" in str(event.get("content"))


@pytest.fixture
def dies_at_the_answer(mortal: Mortal) -> Mortal:
    """Its first attempt dies right after it stored an answer of a tool."""
    mortal.deadly = lambda deed: deed[0] == "event" and '"function_response":{' in deed[1]
    return mortal


async def test_an_answer_that_needs_no_words_gets_none(dies_at_the_answer: Mortal) -> None:
    def show(tool_context: ToolContext) -> str:
        tool_context.actions.skip_summarization = True
        return "shown"

    model = ScriptedLlm(script=by_turn(call("show"), say("Words.")))
    ending = await dies_at_the_answer.live(lambda: an_app(model, [show]))
    assert ending.outcome is Outcome.FINISHED
    assert (len(model.asked), dies_at_the_answer.deaths) == (1, 1)
    assert sum(map(told, await dies_at_the_answer.stage.stored())) == 1


async def test_what_a_tool_left_behind_is_stored_with_its_answer(mortal: Mortal) -> None:
    """Its process died between the journal and the event."""

    def draw(tool_context: ToolContext) -> str:
        tool_context.state["drawn"] = "tokens"
        tool_context.actions.artifact_delta["tokens.svg"] = 0
        return "drawn"

    mortal.deadly = lambda deed: deed[0] == "end"
    model = ScriptedLlm(script=by_turn(call("draw"), say("Done.")))
    assert (await mortal.live(lambda: an_app(model, [draw]))).outcome is Outcome.FINISHED
    assert list(mortal.effects.values()) == [1]
    (answer,) = filter(told, await mortal.stage.stored())
    assert answer["actions"]["state_delta"] == {"drawn": "tokens"}
    assert answer["actions"]["artifact_delta"] == {"tokens.svg": 0}


@pytest.mark.parametrize("beside", [(), ("other",)], ids=["alone", "beside another"])
async def test_a_confirmation_that_was_needed_is_asked_for(
    dies_at_the_answer: Mortal, beside: tuple[str, ...]
) -> None:
    ran: list[str] = []

    def noting(name: str) -> Callable[[], str]:
        def note() -> str:
            ran.append(name)
            return name

        note.__name__ = name
        return note

    gated = FunctionTool(noting("gated"), require_confirmation=True)
    model = ScriptedLlm(script=by_turn([call("gated"), *map(call, beside)], say("Done.")))
    ending = await dies_at_the_answer.live(lambda: an_app(model, [gated, *map(noting, beside)]))
    assert ending.outcome is Outcome.WAITING
    assert (ran, len(model.asked)) == ([*beside], 1)
    assert "adk_request_confirmation" in ending.message
