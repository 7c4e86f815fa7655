"""Agents that run as tools, and the nodes of workflows: what they start over costs and does nothing twice."""

import asyncio
from collections import Counter

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from google.adk.workflow._tool_node import _ToolNode

from support.stage import Reply, ScriptedLlm, Stage, an_app, by_turn, call, results, say
from triage_contract.states import InDoubt, Outcome

# AgentTool itself does what ADK warns of.
pytestmark = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")


class Effect:
    """An effect that can be told to never return from its nth time."""

    def __init__(self, stuck_at: int) -> None:
        self.stuck_at = stuck_at
        self.ids: list[str | None] = []
        self.stuck = asyncio.Event()

    async def do(self, what: str, tool_context: ToolContext) -> str:
        self.ids.append(tool_context.function_call_id)
        if len(self.ids) == self.stuck_at:
            self.stuck.set()
            await asyncio.Event().wait()
        return f"did {what}"


def asked_of(request: LlmRequest) -> str:
    """The words that an inner agent was called with."""
    parts = request.contents[0].parts or []
    return str(parts[0].text)


def inner_script(request: LlmRequest) -> list[Reply]:
    """Do what was asked for, and say so."""
    return [say(f"done {asked_of(request)}") if results(request) else call("do", what=asked_of(request))]


def helper(effect: Effect) -> tuple[ScriptedLlm, AgentTool]:
    """An agent that does one effect for each call of it."""
    model = ScriptedLlm(script=inner_script)
    return model, AgentTool(LlmAgent(name="helper", description="d", model=model, tools=[effect.do]))


async def test_an_agent_that_runs_as_a_tool_repeats_nothing(stage: Stage) -> None:
    effect = Effect(stuck_at=2)
    inner, tool = helper(effect)
    outer = ScriptedLlm(
        script=by_turn(call("helper", request="a"), call("helper", request="b"), say("Done."))
    )
    app = an_app(outer, [tool])
    await stage.lose(app, effect.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(effect.ids) == 3
    assert effect.ids[1] == effect.ids[2]
    assert (len(outer.asked), len(inner.asked)) == (3, 4)
    assert results(outer.asked[-1]) == [{"result": "done a"}, {"result": "done b"}]


async def test_the_same_call_of_an_agent_twice_is_two_calls(stage: Stage) -> None:
    """The second may not be taken for the first one again, although everything in it is equal."""
    effect = Effect(stuck_at=2)
    inner, tool = helper(effect)
    outer = ScriptedLlm(
        script=by_turn(call("helper", request="a"), call("helper", request="a"), say("Done."))
    )
    app = an_app(outer, [tool])
    await stage.lose(app, effect.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(effect.ids) == 3
    assert len(set(effect.ids)) == 2
    assert len(inner.asked) == 4


async def test_agents_that_run_side_by_side_get_their_own_answers(stage: Stage) -> None:
    effect = Effect(stuck_at=3)
    _, tool = helper(effect)
    together = [call("helper", request=what) for what in ("a", "b", "b")]
    outer = ScriptedLlm(script=by_turn(together, say("Done.")))
    app = an_app(outer, [tool])
    await stage.lose(app, effect.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(set(effect.ids)) == 3
    assert results(outer.asked[-1]) == [{"result": "done a"}, {"result": "done b"}, {"result": "done b"}]


async def test_a_call_inside_an_agent_that_runs_as_a_tool_is_in_doubt_by_its_own_name(stage: Stage) -> None:
    effect = Effect(stuck_at=1)
    _, tool = helper(effect)
    app = an_app(ScriptedLlm(script=by_turn(call("helper", request="a"), say("Done."))), [tool])
    await stage.lose(app, effect.stuck)
    stage.in_doubt = InDoubt.PARK
    ending = await stage.attempt(app)
    assert (ending.outcome, ending.message) == (
        Outcome.IN_DOUBT,
        "Begun, and not known to have happened: do.",
    )
    assert len(effect.ids) == 1


async def test_an_agent_that_keeps_its_calls_to_itself_is_in_doubt_as_a_whole(stage: Stage) -> None:
    effect = Effect(stuck_at=1)
    model = ScriptedLlm(script=inner_script)
    agent = LlmAgent(name="helper", description="d", model=model, tools=[effect.do])
    outer = ScriptedLlm(script=by_turn(call("helper", request="a"), say("Done.")))
    app = an_app(outer, [AgentTool(agent, include_plugins=False)])
    await stage.lose(app, effect.stuck)
    stage.in_doubt = InDoubt.PARK
    ending = await stage.attempt(app)
    assert ending.message == "Begun, and not known to have happened: helper."


@pytest.mark.parametrize("is_long_running", [False, True], ids=["confirmation", "long-running"])
async def test_an_agent_that_runs_as_a_tool_cannot_wait_for_a_person(
    stage: Stage, is_long_running: bool
) -> None:
    """ADK throws its session away: the calling agent hears that, and nothing that needed the person was done."""
    ran: list[str] = []

    def do(what: str) -> None:
        ran.append(what)

    asking = LongRunningFunctionTool(do) if is_long_running else FunctionTool(do, require_confirmation=True)
    inner = ScriptedLlm(script=inner_script)
    tool = AgentTool(LlmAgent(name="helper", description="d", model=inner, tools=[asking]))
    outer = ScriptedLlm(script=by_turn(call("helper", request="a"), say("Done.")))
    assert (await stage.attempt(an_app(outer, [tool]))).outcome is Outcome.FINISHED
    assert len(ran) == is_long_running
    (result,) = results(outer.asked[-1])
    assert "cannot resume" in str(result)
    assert [row[:2] for row in await stage.calls()] == [
        ("do", "done" if is_long_running else "gated"),
        ("helper", "done"),
    ]


async def test_a_node_inside_an_agent_that_runs_as_a_tool_keeps_its_id(stage: Stage) -> None:
    """Its invocation is another one at each attempt, and the same call twice are two calls."""
    effect = Effect(stuck_at=2)

    def prepare() -> dict[str, str]:
        return {"what": "a"}

    prepare.triage_kind = "ReadOnly"  # type: ignore[attr-defined]
    flow = Workflow(
        name="flow",
        description="d",
        edges=[(START, prepare), (prepare, _ToolNode(tool=FunctionTool(effect.do)))],
    )
    inner = ScriptedLlm(script=by_turn(call("flow"), say("Done.")))
    tool = AgentTool(LlmAgent(name="helper", description="d", model=inner, tools=[flow]))
    outer = ScriptedLlm(
        script=by_turn(call("helper", request="a"), call("helper", request="a"), say("Done."))
    )
    app = an_app(outer, [tool])
    await stage.lose(app, effect.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(effect.ids) == 3
    assert effect.ids[1] == effect.ids[2] != effect.ids[0]


async def test_a_hand_off_lets_an_agent_that_runs_as_a_tool_finish(stage: Stage) -> None:
    async def do(what: str) -> str:
        stage.gate.shut()
        return f"did {what}"

    inner = ScriptedLlm(script=inner_script)
    tool = AgentTool(LlmAgent(name="helper", description="d", model=inner, tools=[do]))
    outer = ScriptedLlm(script=by_turn(call("helper", request="a"), say("Done.")))
    app = an_app(outer, [tool])
    stage.grace_seconds = 3600
    assert (await stage.attempt(app)).outcome is Outcome.HANDED_OFF
    assert [row[:2] for row in await stage.calls()] == [("do", "done"), ("helper", "done")]
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert (len(outer.asked), len(inner.asked)) == (2, 2)


async def test_a_node_of_a_workflow_repeats_nothing(stage: Stage) -> None:
    effect = Effect(stuck_at=2)
    model = ScriptedLlm(script=by_turn(call("do", what="a"), call("do", what="b"), say("Done.")))
    node = LlmAgent(name="node", model=model, tools=[effect.do])
    app = App(name="app", root_agent=Workflow(name="flow", edges=[(START, node)]))
    await stage.lose(app, effect.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert effect.ids[1:] == [effect.ids[1]] * 2
    assert len(model.asked) == 3


async def test_a_tool_that_is_a_node_keeps_its_id(stage: Stage) -> None:
    effect = Effect(stuck_at=1)

    def prepare() -> dict[str, str]:
        return {"what": "a"}

    flow = Workflow(name="flow", edges=[(START, prepare), (prepare, _ToolNode(tool=FunctionTool(effect.do)))])
    app = App(name="app", root_agent=flow)
    await stage.lose(app, effect.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(effect.ids) == 2
    assert len(set(effect.ids)) == 1


async def test_functions_that_are_nodes_run_again_where_no_output_of_theirs_is_stored(stage: Stage) -> None:
    ran: list[str] = []
    stuck = asyncio.Event()

    def tell(node_input: object) -> str:
        ran.append("tell")
        return "told"

    def hush(node_input: object) -> None:
        ran.append("hush")

    async def wait(node_input: object) -> str:
        ran.append("wait")
        if not stuck.is_set():
            stuck.set()
            await asyncio.Event().wait()
        return "waited"

    flow = Workflow(name="flow", edges=[(START, tell, hush, wait)])
    app = App(name="app", root_agent=flow)
    await stage.lose(app, stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert Counter(ran) == {"tell": 1, "hush": 2, "wait": 2}
    assert await stage.calls() == []


async def test_an_agent_as_a_tool_cannot_swallow_an_error_of_ours(stage: Stage) -> None:
    """A single-turn sub-agent answers with whatever its tools raised, as if that were its result."""
    is_broken = True

    async def do(what: str) -> str:
        if is_broken:
            raise RuntimeError("half done")
        return f"did {what}"

    inner = ScriptedLlm(script=inner_script)
    sub = LlmAgent(name="helper", description="d", model=inner, tools=[do], mode="single_turn")
    outer = ScriptedLlm(script=by_turn(call("helper", request="a"), say("Done.")))
    root = LlmAgent(name="docs", model=outer, sub_agents=[sub])
    app = App(name="app", root_agent=root)
    ending = await stage.attempt(app)
    assert (ending.outcome, ending.message) == (
        Outcome.FAILED,
        "tool 'do' raised RuntimeError: half done",
    )
    is_broken = False
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(outer.asked[-1]) == [{"result": "done a"}]
