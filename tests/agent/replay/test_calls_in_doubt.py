"""Calls that began and whose end is not known: which run again, and what a doubt leaves of the calls beside it."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, results, say
from triage_agent.kinds import KIND_ATTRIBUTE, NotPerformed, effect, effect_key
from triage_contract.states import ExitCode, InDoubt, Outcome, ToolKind

DOUBTS = "SELECT tool, state, doubt, doubt_message, begun_times FROM triage.tool_calls ORDER BY tool"


class Tools:
    """One tool that raises, and one that ends only after that."""

    def __init__(self, stage: Stage, error: Exception) -> None:
        self.stage = stage
        self.error: Exception | None = error
        self.ran: list[str] = []
        self.begun = asyncio.Event()

    async def bad(self) -> str:
        self.ran.append("bad")
        await self.begun.wait()
        if self.error is not None:
            raise self.error
        return "two"

    async def slow(self) -> str:
        self.ran.append("slow")
        self.begun.set()
        while self.error is not None:
            if any(
                row[0] == "bad" and row[2] == "raised" for row in await self.stage.database.values(DOUBTS)
            ):
                break
            await asyncio.sleep(0.01)
        return "one"


BESIDE = by_turn([call("bad"), call("slow")], say("Done."))


@pytest.mark.parametrize(
    ("policy", "kind", "outcome"),
    [
        (InDoubt.PARK, None, Outcome.IN_DOUBT),
        (InDoubt.RETRY, None, Outcome.FAILED),
        (InDoubt.FAIL, None, Outcome.FAILED),
        (InDoubt.PARK, ToolKind.IDEMPOTENT, Outcome.FAILED),
    ],
)
async def test_beside_a_tool_that_raises_the_others_come_to_their_end(
    stage: Stage, policy: InDoubt, kind: ToolKind | None, outcome: Outcome
) -> None:
    tools, model = Tools(stage, ValueError("half")), ScriptedLlm(script=BESIDE)
    stage.in_doubt = policy
    stage.tools = {"bad": kind} if kind else {}
    ending = await stage.attempt(an_app(model, [tools.bad, tools.slow]))
    assert ending.outcome is outcome
    assert ending.message.startswith("tool 'bad' raised ValueError: half")
    assert await stage.database.values(DOUBTS) == [
        ("bad", "begun", "raised", "ValueError: half", 1),
        ("slow", "done", None, None, 1),
    ]
    assert len(model.asked) == 1


async def test_what_ended_beside_a_tool_that_raised_is_kept_for_the_next_attempt(stage: Stage) -> None:
    tools, model = Tools(stage, ValueError("half")), ScriptedLlm(script=BESIDE)
    app = an_app(model, [tools.bad, tools.slow])
    assert (await stage.attempt(app)).outcome is Outcome.FAILED
    tools.error = None
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert sorted(tools.ran) == ["bad", "bad", "slow"]
    assert results(model.asked[-1]) == [{"result": "two"}, {"result": "one"}]


async def test_what_certainly_did_nothing_is_told_to_the_model(stage: Stage) -> None:
    tools = Tools(stage, NotPerformed("the service is closed"))
    tools.begun.set()
    model = ScriptedLlm(script=by_turn(call("bad"), say("Done.")))
    stage.in_doubt = InDoubt.PARK
    assert (await stage.attempt(an_app(model, [tools.bad]))).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"error": "NotPerformed: the service is closed"}]
    assert await stage.calls() == [("bad", "raised", {"error": "NotPerformed: the service is closed"}, 1)]


@pytest.mark.parametrize("is_cause", [True, False])
async def test_an_error_is_as_certain_as_what_it_was_raised_from(stage: Stage, is_cause: bool) -> None:
    async def bad() -> None:
        try:
            raise ConnectionRefusedError
        except ConnectionRefusedError as error:
            error.triage_not_performed = True  # type: ignore[attr-defined]
            if is_cause:
                raise RuntimeError("no service") from error
            raise RuntimeError("half done") from None

    model = ScriptedLlm(script=by_turn(call("bad"), say("Done.")))
    ending = await stage.attempt(an_app(model, [bad]))
    assert ending.outcome is (Outcome.FINISHED if is_cause else Outcome.FAILED)


@pytest.mark.parametrize("is_plugin", [True, False], ids=["another plugin", "the agent"])
async def test_a_call_that_a_callback_keeps_from_its_tool_is_not_in_doubt(
    stage: Stage, is_plugin: bool
) -> None:
    ran: list[str] = []
    is_broken = True

    def pay() -> str:
        ran.append("pay")
        return "paid"

    async def before(**_: Any) -> None:
        if is_broken:
            raise RuntimeError("callback broke")

    class Breaking(BasePlugin):
        async def before_tool_callback(self, **_: Any) -> None:
            await before()

    async def agents_before(tool: BaseTool, args: dict[str, Any], tool_context: ToolContext) -> None:
        await before()

    model = ScriptedLlm(script=by_turn(call("pay"), say("Done.")))
    callbacks = {} if is_plugin else {"before_tool_callback": agents_before}
    app = an_app(model, [pay], **callbacks)
    app = app.model_copy(update={"plugins": [Breaking(name="breaking")] if is_plugin else []})
    stage.in_doubt = InDoubt.PARK
    assert (await stage.attempt(app)).outcome is Outcome.FAILED
    assert [row[:2] for row in await stage.calls()] == [("pay", "gated")]
    is_broken = False
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert ran == ["pay"]


class Abort(BaseException):
    """What ADK hands to no callback."""


class Unreadable(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    "is_raised", [True, False], ids=["raises what is no Exception", "returns what raises"]
)
async def test_a_tool_that_nothing_is_told_of_may_have_had_its_effect(stage: Stage, is_raised: bool) -> None:
    ran: list[str] = []

    async def pay() -> dict[str, Any]:
        ran.append("pay")
        if is_raised:
            raise Abort
        return Unreadable()

    app = an_app(ScriptedLlm(script=by_turn(call("pay"), say("Done."))), [pay])
    stage.in_doubt = InDoubt.PARK
    assert (await stage.attempt(app)).outcome is Outcome.FAILED
    assert [row[:2] for row in await stage.calls()] == [("pay", "begun")]
    assert (await stage.attempt(app)).outcome is Outcome.IN_DOUBT
    assert ran == ["pay"]


async def test_no_step_of_another_branch_begins_after_a_doubt(stage: Stage) -> None:
    """Nor does its running call end with the branch that raised."""
    tools = Tools(stage, ValueError("half"))
    one = LlmAgent(name="one", model=ScriptedLlm(script=by_turn(call("bad"), say("A."))), tools=[tools.bad])
    other_model = ScriptedLlm(script=by_turn(call("slow"), call("slow"), say("B.")))
    other = LlmAgent(name="other", model=other_model, tools=[tools.slow])
    app = App(name="app", root_agent=Workflow(name="flow", edges=[(START, (one, other))]))
    stage.in_doubt = InDoubt.PARK
    assert (await stage.attempt(app)).outcome is Outcome.IN_DOUBT
    assert sorted(tools.ran) == ["bad", "slow"]
    assert [row[:2] for row in await stage.calls()] == [("bad", "begun"), ("slow", "done")]
    assert len(other_model.asked) == 1


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
async def test_agents_that_run_as_tools_beside_each_other_end_with_a_doubt_in_one(stage: Stage) -> None:
    tools = Tools(stage, ValueError("half"))

    def helper(name: str, tool: Any) -> AgentTool:
        model = ScriptedLlm(script=by_turn(call(tool.__name__), say("Done.")))
        return AgentTool(LlmAgent(name=name, description="d", model=model, tools=[tool]))

    together = [call("first", request="a"), call("second", request="b")]
    model = ScriptedLlm(script=by_turn(together, say("Done.")))
    app = an_app(model, [helper("first", tools.bad), helper("second", tools.slow)])
    stage.in_doubt = InDoubt.PARK
    ending = await stage.attempt(app)
    assert (ending.outcome, ending.exit_code) == (Outcome.IN_DOUBT, ExitCode.IN_DOUBT)
    assert [row[:2] for row in await stage.calls()] == [
        ("bad", "begun"),
        ("first", "begun"),
        ("second", "begun"),
        ("slow", "done"),
    ]


class Effects:
    """A tool whose effect has a key of its own, and can be told to get stuck in it."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.stuck = asyncio.Event()
        self.is_stuck = False

    def tool(self, kind: ToolKind = ToolKind.UNDECLARED) -> Any:
        @effect(key=lambda args: f"order/{args['number']}")
        async def order(number: int, note: str, tool_context: ToolContext) -> str:
            self.ran.append(effect_key(tool_context))
            if self.is_stuck:
                self.stuck.set()
                await asyncio.Event().wait()
            return note

        setattr(order, KIND_ATTRIBUTE, kind)
        return order


async def another_run(stage: Stage, invocation_id: str) -> None:
    """Let the next attempts be those of a second run on the same session."""
    await stage.database.values("UPDATE triage.runs SET state = 'succeeded'")
    await stage.database.close(stage.run, stage.epoch)
    stage.run = replace(stage.run, id=uuid4(), name="second", invocation_id=invocation_id)


async def test_a_key_of_an_effect_holds_beyond_its_invocation(stage: Stage) -> None:
    effects = Effects()
    model = ScriptedLlm(script=by_turn(call("order", number=1, note="a"), say("Done.")))
    assert (await stage.attempt(an_app(model, [effects.tool()]))).outcome is Outcome.FINISHED
    await another_run(stage, "inv-second")
    again = ScriptedLlm(
        script=lambda request: (
            [say("Done.")] if len(results(request)) == 2 else [call("order", number=1, note="b")]
        )
    )
    assert (await stage.attempt(an_app(again, [effects.tool()]))).outcome is Outcome.FINISHED
    assert len(effects.ran) == 1
    assert results(again.asked[-1]) == [{"result": "a"}] * 2
    assert await stage.database.values("SELECT call_id, suppressed_by_journal FROM triage.tool_calls") == [
        ("effect:order:order/1", 1)
    ]


@pytest.mark.parametrize("kind", [None, ToolKind.READ_ONLY])
async def test_an_effect_that_did_not_happen_is_still_to_be_had(stage: Stage, kind: ToolKind | None) -> None:
    ran: list[str] = []

    @effect(key="welcome")
    def welcome() -> str:
        ran.append("welcome")
        if len(ran) == 1:
            raise NotPerformed("line busy") if kind is None else ValueError("no line")
        return "told"

    model = ScriptedLlm(script=by_turn(call("welcome"), call("welcome"), call("welcome"), say("Done.")))
    stage.tools = {} if kind is None else {"welcome": kind}
    assert (await stage.attempt(an_app(model, [welcome]))).outcome is Outcome.FINISHED
    failed, *others = results(model.asked[-1])
    assert "error" in failed
    assert others == [{"result": "told"}] * 2
    assert len(ran) == 2


@pytest.mark.parametrize("wrong", [{}, {"number": "first"}], ids=["without an argument", "with a wrong one"])
async def test_a_call_that_cannot_have_a_key_is_the_models_mistake_to_correct(
    stage: Stage, wrong: dict[str, Any]
) -> None:
    ran: list[Any] = []

    @effect(key=lambda args: str(int(args["number"])))
    def order(number: Any) -> str:
        ran.append(number)
        return "sent"

    model = ScriptedLlm(script=by_turn(call("order", **wrong), call("order", number=1), say("Done.")))
    assert (await stage.attempt(an_app(model, [order]))).outcome is Outcome.FINISHED
    failed, sent = results(model.asked[-1])
    assert ("number" if wrong == {} else "ValueError") in failed["error"]
    assert (sent, ran) == ({"result": "sent"}, [1])


async def test_what_adk_finds_wrong_with_a_call_is_no_answer_to_others_of_its_key(stage: Stage) -> None:
    ran: list[str] = []

    @effect(key="welcome")
    def welcome(customer: str) -> str:
        ran.append(customer)
        return "told"

    model = ScriptedLlm(script=by_turn(call("welcome"), call("welcome", customer="a"), say("Done.")))
    assert (await stage.attempt(an_app(model, [welcome]))).outcome is Outcome.FINISHED
    assert results(model.asked[-1])[1] == {"result": "told"}
    assert ran == ["a"]


async def test_a_second_run_meets_the_doubt_that_the_first_left(stage: Stage) -> None:
    effects = Effects()
    effects.is_stuck = True
    stage.in_doubt = InDoubt.PARK
    model = ScriptedLlm(script=by_turn(call("order", number=1, note="a"), say("Done.")))
    await stage.lose(an_app(model, [effects.tool()]), effects.stuck)
    await another_run(stage, "inv-second")
    again = ScriptedLlm(script=lambda _: [call("order", number=1, note="b")])
    ending = await stage.attempt(an_app(again, [effects.tool()]))
    assert ending.outcome is Outcome.IN_DOUBT
    assert "order" in ending.message
    ending = await stage.attempt(an_app(again, [effects.tool()]))
    assert (ending.outcome, ending.message) == (
        Outcome.IN_DOUBT,
        "Begun, and not known to have happened: order.",
    )
    assert len(effects.ran) == 1


async def test_two_calls_at_once_for_one_effect_are_one(stage: Stage) -> None:
    effects = Effects()
    together = [call("order", number=1, note=note) for note in "ab"]
    model = ScriptedLlm(script=by_turn(together, say("Done.")))
    stage.in_doubt = InDoubt.PARK
    assert (await stage.attempt(an_app(model, [effects.tool()]))).outcome is Outcome.FINISHED
    assert len(effects.ran) == 1
    assert results(model.asked[-1]) == [{"result": "a"}] * 2


async def test_a_long_key_is_digested(stage: Stage) -> None:
    @effect(key="k" * 5000)
    def order() -> str:
        return "done"

    model = ScriptedLlm(script=by_turn(call("order"), say("Done.")))
    assert (await stage.attempt(an_app(model, [order]))).outcome is Outcome.FINISHED
    ((key,),) = await stage.database.values("SELECT call_id FROM triage.tool_calls")
    assert str(key).startswith("effect:order:")
    assert len(str(key)) == len("effect:order:") + 64


async def test_a_key_that_is_none_is_a_bad_configuration(stage: Stage) -> None:
    @effect(key=lambda args: "")
    def order() -> str:
        raise AssertionError("ran without a key")

    ending = await stage.attempt(an_app(ScriptedLlm(script=by_turn(call("order"))), [order]))
    assert ending.outcome is Outcome.BAD_CONFIGURATION
    assert "triage_effect_key gives ''" in ending.message
    assert await stage.calls() == []


@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
async def test_an_idempotent_tool_has_the_same_key_each_time(stage: Stage) -> None:
    keys: list[str] = []
    stuck = asyncio.Event()

    async def do(tool_context: ToolContext) -> str:
        keys.append(effect_key(tool_context))
        if len(keys) == 1:
            stuck.set()
            await asyncio.Event().wait()
        return "done"

    inner = ScriptedLlm(script=by_turn(call("do"), say("Done.")))
    tool = AgentTool(LlmAgent(name="helper", description="d", model=inner, tools=[do]))
    app = an_app(ScriptedLlm(script=by_turn(call("helper", request="a"), say("Done."))), [tool])
    await stage.lose(app, stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(set(keys)) == 1
    assert keys[0].startswith(f"{stage.run.session.session_id}/adk-")
