"""A tool that raises: its siblings' results are kept, and no call is lost to the error."""

import asyncio
from typing import Any

import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, results, say
from triage_agent.kinds import idempotent, read_only
from triage_contract.exceptions import DatabaseUnreachableError
from triage_contract.states import ExitCode, Outcome

CALLED_TWICE = by_turn([call("good"), call("bad")], say("Done."))


class Tools:
    """One tool that works, and one that raises until it is mended."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.ids: set[str | None] = set()
        self.is_mended = False
        self.good_is_done = asyncio.Event()

    async def good(self) -> str:
        self.ran.append("good")
        asyncio.get_running_loop().call_later(0.1, self.good_is_done.set)
        return "one"

    async def bad(self, tool_context: ToolContext) -> str:
        self.ran.append("bad")
        self.ids.add(tool_context.function_call_id)
        if not self.is_mended:
            await self.good_is_done.wait()
            raise ValueError("postgresql://me:secret@host/db said\nno")
        return "two"


def open_of(events: list[dict[str, Any]]) -> list[str]:
    """What is stored last, which a resume goes by."""
    return [part for event in events[-1:] for key in event["content"]["parts"] for part in key]


@pytest.mark.parametrize("declare", [idempotent, lambda function: function], ids=["idempotent", "undeclared"])
async def test_an_effect_that_raises_ends_the_attempt_and_runs_again_under_its_id(
    stage: Stage, declare: Any
) -> None:
    tools, model = Tools(), ScriptedLlm(script=CALLED_TWICE)
    declared = declare(lambda tool_context: tools.bad(tool_context))

    async def bad(tool_context: ToolContext) -> str:
        return await tools.bad(tool_context)

    bad.__dict__.update(declared.__dict__)
    app = an_app(model, [tools.good, bad])
    ending = await stage.attempt(app)
    assert (ending.outcome, ending.exit_code) == (Outcome.FAILED, ExitCode.FAILED)
    assert ending.message == "tool 'bad' raised ValueError: postgresql://***@host/db said no"
    assert [row[:2] for row in await stage.calls()] == [("bad", "begun"), ("good", "done")]
    assert open_of(await stage.stored()) == ["function_call", "function_call"]
    assert await stage.last_attempt("error") == (ending.message,)

    tools.is_mended = True
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert tools.ran == ["good", "bad", "bad"]
    assert len(tools.ids) == 1
    assert results(model.asked[-1]) == [{"result": "one"}, {"result": "two"}]


async def test_a_tool_that_does_not_reach_its_database_is_not_the_agents_fault(stage: Stage) -> None:
    def bad() -> None:
        raise DatabaseUnreachableError("host:5432/db: refused")

    ending = await stage.attempt(an_app(ScriptedLlm(script=by_turn(call("bad"))), [bad]))
    assert (ending.outcome, ending.exit_code) == (None, ExitCode.DATABASE_UNREACHABLE)
    assert [row[:2] for row in await stage.calls()] == [("bad", "begun")]


async def test_a_read_only_tool_that_raises_tells_the_model_so(stage: Stage) -> None:
    tools, model = Tools(), ScriptedLlm(script=CALLED_TWICE)

    @read_only
    async def bad(tool_context: ToolContext) -> str:
        return await tools.bad(tool_context)

    app = an_app(model, [tools.good, bad])
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [
        {"result": "one"},
        {"error": "ValueError: postgresql://***@host/db said no"},
    ]
    assert [row[:2] for row in await stage.calls()] == [("bad", "raised"), ("good", "done")]


async def test_what_the_agent_makes_of_an_error_is_the_calls_result(stage: Stage) -> None:
    tools, model = Tools(), ScriptedLlm(script=CALLED_TWICE)

    async def handle(
        tool: BaseTool, args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any]:
        return {"sorry": type(error).__name__}

    app = an_app(model, [tools.good, tools.bad], on_tool_error_callback=handle)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"result": "one"}, {"sorry": "ValueError"}]
    assert (await stage.calls())[0][:3] == ("bad", "raised", {"sorry": "ValueError"})


async def test_what_another_plugin_makes_of_an_error_is_the_calls_result(stage: Stage) -> None:
    class Handling(BasePlugin):
        async def on_tool_error_callback(self, **_: Any) -> dict[str, Any]:
            return {"sorry": "plugin"}

    tools, model = Tools(), ScriptedLlm(script=CALLED_TWICE)
    app = an_app(model, [tools.good, tools.bad]).model_copy(update={"plugins": [Handling(name="handling")]})
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(model.asked[-1])[1] == {"sorry": "plugin"}


async def test_an_error_of_a_callback_hides_no_call(stage: Stage) -> None:
    """ADK keeps the results of the siblings then; stored, they would make it pass over the failed call."""
    tools, model = Tools(), ScriptedLlm(script=CALLED_TWICE)
    tools.is_mended = True

    async def before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        if tool.name == "bad" and "retried" not in tools.ran:
            await tools.good_is_done.wait()
            raise RuntimeError("callback broke")

    app = an_app(model, [tools.good, tools.bad], before_tool_callback=before)
    ending = await stage.attempt(app)
    assert (ending.outcome, ending.message) == (
        Outcome.FAILED,
        "the agent raised RuntimeError: callback broke",
    )
    assert open_of(await stage.stored()) == ["function_call", "function_call"]
    tools.ran.append("retried")
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert tools.ran == ["good", "retried", "bad"]


async def test_an_agent_that_fails_hides_no_call_of_another(stage: Stage) -> None:
    tools = Tools()
    started = asyncio.Event()

    async def slow() -> str:
        tools.ran.append("slow")
        started.set()
        if not tools.is_mended:
            await asyncio.Event().wait()
        return "slow"

    class Waiting(ScriptedLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            await started.wait()
            async for reply in super().generate_content_async(llm_request, stream):
                yield reply

    broken = Waiting(script=by_turn(OSError("no route")))
    working = LlmAgent(
        name="working", model=ScriptedLlm(script=by_turn(call("slow"), say("A."))), tools=[slow]
    )
    with pytest.warns(DeprecationWarning, match="ParallelAgent"):
        root = ParallelAgent(name="root", sub_agents=[working, LlmAgent(name="other", model=broken)])
    app = App(name="app", root_agent=root)
    assert (await stage.attempt(app)).outcome is Outcome.MODEL_UNAVAILABLE
    tools.is_mended = True
    broken.script = by_turn(say("B."))
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert tools.ran == ["slow", "slow"]


async def test_a_callback_that_writes_state_hides_no_call(stage: Stage) -> None:
    tools, model = Tools(), ScriptedLlm(script=by_turn(call("bad"), say("Done.")))
    tools.good_is_done.set()

    def count(callback_context: CallbackContext) -> None:
        callback_context.state["runs"] = callback_context.state.get("runs", 0) + 1

    app = an_app(model, [tools.bad], before_agent_callback=count)
    assert (await stage.attempt(app)).outcome is Outcome.FAILED
    tools.is_mended = True
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert tools.ran == ["bad", "bad"]


async def test_an_agent_that_cancels_itself_fails(stage: Stage) -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    ending = await stage.attempt(an_app(ScriptedLlm(script=by_turn(call("give_up"))), [give_up]))
    assert ending.outcome is Outcome.FAILED
