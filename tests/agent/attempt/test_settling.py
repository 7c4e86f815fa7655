"""Calls in doubt are settled before the agent goes on: their outside world is asked."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.apps.app import App
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, results, say
from triage_agent.kinds import effect, effect_key, reconciled_by
from triage_contract.states import ExitCode, InDoubt, Outcome, ToolKind

ONE_CALL = by_turn(call("order", number=7), say("Done."))
ROWS = "SELECT state, doubt, doubt_message, asked_confirmed, begun_times FROM triage.tool_calls"


class World:
    """An outside world that takes orders and can be asked about them. It gets stuck in its first order."""

    def __init__(self, says: Any, *, key: Any = None) -> None:
        self.says = says
        self.key = key
        self.orders: list[str] = []
        self.asked: list[tuple[Mapping[str, Any], str, datetime]] = []
        self.stuck = asyncio.Event()

    def reconcile(self, args: Mapping[str, Any], key: str, begun_at: datetime) -> Any:
        self.asked.append((args, key, begun_at))
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    async def reconcile_later(self, args: Mapping[str, Any], key: str, begun_at: datetime) -> Any:
        return self.reconcile(args, key, begun_at)

    def tool(self, *, is_async: bool = False) -> Any:
        @reconciled_by(self.reconcile_later if is_async else self.reconcile)
        async def order(number: int, tool_context: ToolContext) -> dict[str, Any]:
            self.orders.append(effect_key(tool_context))
            if len(self.orders) == 1:
                self.stuck.set()
                await asyncio.Event().wait()
            return {"ordered": number}

        return order if self.key is None else effect(key=self.key)(order)


class Unreadable(dict[str, Any]):
    """A result that can be read only while something is open."""

    def keys(self) -> Any:
        raise RuntimeError("closed")

    def __iter__(self) -> Any:
        raise RuntimeError("closed")


@pytest.fixture
def stage(stage: Stage) -> Stage:
    stage.in_doubt = InDoubt.PARK
    return stage


async def confirm(stage: Stage) -> None:
    """As the operator does once it knows that the processes of all attempts are dead."""
    await stage.database.values("UPDATE triage.attempts SET confirmed_at = clock_timestamp()")


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_happened_is_the_calls_result(stage: Stage, is_async: bool) -> None:
    world, model = World({"number": 12}), ScriptedLlm(script=ONE_CALL)
    app = an_app(model, [world.tool(is_async=is_async)])
    await stage.lose(app, world.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"number": 12}]
    assert len(model.asked) == 2
    ((args, key, begun_at),) = world.asked
    assert args == {"number": 7}
    assert [key] == world.orders
    assert datetime.now(UTC) - begun_at < timedelta(minutes=1)
    assert await stage.database.values(ROWS) == [
        ("settled", None, "its outside world has the result", False, 1)
    ]


async def test_what_did_not_happen_runs_again_once_its_process_is_known_to_be_dead(stage: Stage) -> None:
    world, model = World(False), ScriptedLlm(script=ONE_CALL)
    app = an_app(model, [world.tool()])
    await stage.lose(app, world.stuck)

    ending = await stage.attempt(app)
    assert (ending.outcome, ending.exit_code) == (Outcome.IN_DOUBT, ExitCode.IN_DOUBT)
    assert ending.message.startswith("Begun, and not known to have happened: order. order (adk-")
    assert ending.message.endswith("): its outside world has not seen it.")
    assert await stage.last_attempt("error") == (ending.message,)
    assert len(world.orders) == 1

    # Nothing is known that was not known then: nobody is asked again.
    assert (await stage.attempt(app)).outcome is Outcome.IN_DOUBT
    assert len(world.asked) == 1

    await confirm(stage)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(world.asked) == 2
    assert len(set(world.orders)) == 1
    assert results(model.asked[-1]) == [{"ordered": 7}]


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (None, "its outside world cannot tell"),
        (True, "its outside world cannot tell"),
        ("yes", "its outside world cannot tell"),
        (
            OSError("postgresql://me:secret@host/db said no"),
            "asking its outside world raised OSError: postgresql://***@host/db said no",
        ),
        (
            StopIteration("no more"),
            "asking its outside world raised RuntimeError: function raised StopIteration",
        ),
        (Unreadable(), "asking its outside world raised RuntimeError: closed"),
    ],
    ids=["nothing", "no result", "nonsense", "error", "error of next()", "unreadable result"],
)
async def test_what_nobody_knows_stays_in_doubt(stage: Stage, says: Any, message: str) -> None:
    world = World(says)
    app = an_app(ScriptedLlm(script=ONE_CALL), [world.tool()])
    await stage.lose(app, world.stuck)
    await confirm(stage)
    ending = await stage.attempt(app)
    assert ending.outcome is Outcome.IN_DOUBT
    assert ending.message.endswith(f"): {message}.")
    assert await stage.database.values(ROWS) == [("begun", "unknown", message, True, 1)]
    assert len(world.orders) == 1


async def test_a_key_of_its_own_is_what_the_outside_world_is_asked_by(stage: Stage) -> None:
    world = World({"number": 12}, key=lambda args: f"order-{args['number']}")
    app = an_app(ScriptedLlm(script=ONE_CALL), [world.tool()])
    await stage.lose(app, world.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert [key for _, key, _ in world.asked] == ["order-7"]


async def test_what_raised_is_asked_about_and_may_run_again(stage: Stage) -> None:
    """Its process said itself that the call is over."""
    world, ran = World(False), []

    @reconciled_by(world.reconcile)
    async def order(number: int) -> str:
        ran.append(number)
        if len(ran) == 1:
            raise TimeoutError
        return "ordered"

    model = ScriptedLlm(script=ONE_CALL)
    app = an_app(model, [order])
    assert (await stage.attempt(app)).outcome is Outcome.FAILED
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert ran == [7, 7]
    assert len(world.asked) == 1


async def test_of_calls_at_once_each_is_settled_by_itself(stage: Stage) -> None:
    world = World({"number": 12})
    other = World(None)

    @reconciled_by(other.reconcile)
    async def pay(amount: int) -> str:
        other.orders.append("pay")
        await world.stuck.wait()
        other.stuck.set()
        await asyncio.Event().wait()
        return "paid"

    model = ScriptedLlm(script=by_turn([call("order", number=7), call("pay", amount=3)], say("Done.")))
    app = an_app(model, [world.tool(), pay])
    await stage.lose(app, other.stuck)
    ending = await stage.attempt(app)
    assert ending.outcome is Outcome.IN_DOUBT
    assert ending.message.startswith("Begun, and not known to have happened: pay.")
    assert [row[:2] for row in await stage.calls()] == [("order", "settled"), ("pay", "begun")]

    await stage.database.values(
        "UPDATE triage.tool_calls SET state = 'settled', result = '{\"paid\": 3}', settled_by = 'decision'"
        " WHERE tool = 'pay'"
    )
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"number": 12}, {"paid": 3}]
    assert (len(world.orders), len(other.orders)) == (1, 1)


class Shop(BaseToolset):
    """A toolset that is asked for its tools like a server."""

    def __init__(self, tool: Any) -> None:
        super().__init__(tool_name_prefix="shop")
        self._tool = tool

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return [FunctionTool(self._tool)]


async def test_a_tool_of_a_toolset_is_found(stage: Stage) -> None:
    world = World({"number": 12})
    model = ScriptedLlm(script=by_turn(call("shop_order", number=7), say("Done.")))
    app = an_app(model, [Shop(world.tool())])
    await stage.lose(app, world.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"number": 12}]


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
async def test_a_tool_of_an_agent_that_runs_as_a_tool_is_found(stage: Stage) -> None:
    world = World({"number": 12})
    inner = ScriptedLlm(script=ONE_CALL)
    tool = AgentTool(LlmAgent(name="helper", description="d", model=inner, tools=[world.tool()]))
    app = an_app(ScriptedLlm(script=by_turn(call("helper", request="a"), say("Done."))), [tool])
    await stage.lose(app, world.stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert results(inner.asked[-1]) == [{"number": 12}]
    assert [key for _, key, _ in world.asked] == world.orders


async def test_a_tool_that_nobody_can_ask_about_is_a_bad_configuration(stage: Stage) -> None:
    def order(number: int) -> str:
        raise AssertionError("ran without a function to ask")

    stage.tools = {"order": ToolKind.RECONCILE}
    ending = await stage.attempt(an_app(ScriptedLlm(script=ONE_CALL), [order]))
    assert ending.outcome is Outcome.BAD_CONFIGURATION
    assert (
        ending.message == "tool 'order' is Reconcile, but has no function to ask: triage_reconcile is not set"
    )
    assert await stage.stored() == []


async def test_a_tool_that_is_gone_cannot_be_asked_about(stage: Stage) -> None:
    world = World({"number": 12})
    await stage.lose(an_app(ScriptedLlm(script=ONE_CALL), [world.tool()]), world.stuck)
    ending = await stage.attempt(
        App(name="app", root_agent=LlmAgent(name="docs", model=ScriptedLlm(script=ONE_CALL)))
    )
    assert ending.outcome is Outcome.BAD_CONFIGURATION
    assert "'order' has a call in doubt" in ending.message


async def test_asking_is_broken_off_when_the_attempt_is_to_end(stage: Stage) -> None:
    world = World(None)
    asking = asyncio.Event()

    async def ask(args: Mapping[str, Any], key: str, begun_at: datetime) -> None:
        asking.set()
        stage.gate.shut()
        await asyncio.Event().wait()

    tool = world.tool()
    app = an_app(ScriptedLlm(script=ONE_CALL), [tool])
    await stage.lose(app, world.stuck)
    tool.triage_reconcile = ask
    stage.grace_seconds = 0.0
    assert (await stage.attempt(app)).outcome is Outcome.HANDED_OFF
    assert asking.is_set()
    assert [row[:2] for row in await stage.database.values(ROWS)] == [("begun", None)]
