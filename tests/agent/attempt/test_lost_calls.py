"""Calls without an answer that a resume of ADK would pass over: the lost ones run, the answered ones do not."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, BaseNode, Workflow
from google.genai import types

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, results, say
from support.stored import answered, asked, called, store
from triage_agent.attempt.repairing import NOT_DONE
from triage_agent.kinds import effect_key
from triage_contract.states import InDoubt, Outcome

REPAIRS = "SELECT call_id, message FROM triage.repairs ORDER BY id"


class Pages:
    """Tools that remember what they were called with, and under which id."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []
        self.keys: list[str] = []

    def read(self, name: str, tool_context: ToolContext) -> str:
        self.ran.append(("read", name))
        self.keys.append(effect_key(tool_context))
        tool_context.state[f"read_{name}"] = True
        return f"page {name}"

    async def list(self, name: str) -> str:
        self.ran.append(("list", name))
        return f"list {name}"


def seen(model: ScriptedLlm) -> dict[str | None, Any]:
    """The answers that the model was shown last, by the ids of their calls."""
    parts = [part for content in model.asked[-1].contents for part in content.parts or []]
    answers = [part.function_response for part in parts if part.function_response is not None]
    assert len({it.id for it in answers}) == len(answers)
    return {it.id: it.response for it in answers}


def last_model() -> ScriptedLlm:
    """A model that has only its last word to say."""
    return ScriptedLlm(script=lambda _: [say("Done.")])


TWO_NAMES = (("read", "a"), ("list", "a"))
ONE_NAME = (("read", "a"), ("read", "b"))
THREE = (("read", "a"), ("list", "b"), ("read", "c"))


@pytest.mark.parametrize("author", ["user", "docs"])
@pytest.mark.parametrize(
    ("calls", "done"),
    [
        (TWO_NAMES, [0]),
        (TWO_NAMES, [1]),
        (TWO_NAMES, [0, 1]),
        (TWO_NAMES, []),
        (ONE_NAME, [0]),
        (ONE_NAME, [1]),
        (ONE_NAME, [0, 1]),
        (ONE_NAME, []),
        (THREE, [0]),
        (THREE, [1]),
        (THREE, [0, 2]),
        (ONE_NAME[:1], []),
        (ONE_NAME[:1], [0]),
    ],
)
async def test_the_lost_ones_run_and_the_model_sees_every_answer(
    stage: Stage, calls: Sequence[tuple[str, str]], done: list[int], author: str
) -> None:
    pages, model = Pages(), last_model()
    parts = [call(tool, f"call_{at}", name=name) for at, (tool, name) in enumerate(calls)]
    events = [asked(stage), called(stage, parts)]
    if done:
        events.append(answered(stage, *((parts[at], "earlier") for at in done), author=author))
    await store(stage, *events)
    stage.in_doubt = InDoubt.PARK
    assert (await stage.attempt(an_app(model, [pages.read, pages.list]))).outcome is Outcome.FINISHED
    lost = [it for at, it in enumerate(calls) if at not in done]
    word = {"read": "page", "list": "list"}
    assert sorted(pages.ran) == sorted(lost)
    assert seen(model) == {
        f"call_{at}": {"result": "earlier" if at in done else f"{word[tool]} {name}"}
        for at, (tool, name) in enumerate(calls)
    }
    assert len(model.asked) == 1
    ((state,),) = await stage.database.values("SELECT state FROM sessions")
    assert state == {f"read_{name}": True for tool, name in lost if tool == "read"}


async def test_each_repair_is_noted(stage: Stage) -> None:
    pages, model = Pages(), last_model()
    parts = [call("read", f"call_{name}", name=name) for name in "abc"]
    await store(
        stage, asked(stage), called(stage, parts), answered(stage, (parts[1], "earlier"), author="docs")
    )
    assert (await stage.attempt(an_app(model, [pages.read]))).outcome is Outcome.FINISHED
    assert await stage.database.values(REPAIRS) == [
        (id_, f"ADK would not have run call {id_} of read any more: it was brought to its end.")
        for id_ in ("call_a", "call_c")
    ]
    assert pages.keys == [f"{stage.run.session.session_id}/call_{name}" for name in "ac"]


@pytest.mark.parametrize(
    "between",
    [
        Event(author="docs", error_code="ValueError", error_message="the tool raised"),
        Event(author="docs", actions=EventActions(state_delta={"seen": 1})),
        Event(author="user", actions=EventActions(state_delta={"seen": 1})),
        Event(author="user", content=types.Content(role="user", parts=[types.Part(text="Hello?")])),
    ],
    ids=["error", "state of an agent", "state of a resume", "stray text"],
)
async def test_what_came_between_a_call_and_its_answer_does_not_hide_it(stage: Stage, between: Event) -> None:
    pages, model = Pages(), last_model()
    between.invocation_id, between.timestamp = stage.run.invocation_id, time.time() + 1
    await store(stage, asked(stage), called(stage, [call("read", "call_0", name="a")]), between)
    ending = await stage.attempt(an_app(model, [pages.read]))
    assert ending.outcome is Outcome.FINISHED
    assert pages.ran == [("read", "a")]
    assert results(model.asked[-1]) == [{"result": "page a"}]
    assert [row[0] for row in await stage.database.values(REPAIRS)] == ["call_0"]


async def test_an_agents_callback_that_writes_state_is_no_reason_to_pass_over_its_call(stage: Stage) -> None:
    pages, model = Pages(), last_model()

    def count(callback_context: CallbackContext) -> None:
        callback_context.state["temp:runs"] = 1

    await store(stage, asked(stage), called(stage, [call("read", "call_0", name="a")]))
    app = an_app(model, [pages.read], before_agent_callback=count)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert pages.ran == [("read", "a")]


async def test_killed_while_it_repairs_it_goes_on_from_the_journal(stage: Stage) -> None:
    ran: list[str] = []
    stuck = asyncio.Event()

    async def read(name: str) -> str:
        ran.append(name)
        if name == "c" and ran.count("c") == 1:
            while [row[1] for row in await stage.calls()].count("done") < 1:
                await asyncio.sleep(0.01)
            stuck.set()
            await asyncio.Event().wait()
        return f"page {name}"

    model = last_model()
    parts = [call("read", f"call_{name}", name=name) for name in "abc"]
    await store(
        stage, asked(stage), called(stage, parts), answered(stage, (parts[1], "earlier"), author="docs")
    )
    app = an_app(model, [read])
    await stage.lose(app, stuck)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert sorted(ran) == ["a", "c", "c"]
    assert seen(model) == {
        "call_a": {"result": "page a"},
        "call_b": {"result": "earlier"},
        "call_c": {"result": "page c"},
    }


async def test_a_lost_call_in_doubt_does_not_run(stage: Stage) -> None:
    ran: list[str] = []
    stuck = asyncio.Event()

    async def read(name: str) -> str:
        ran.append(name)
        stuck.set()
        await asyncio.Event().wait()
        return ""

    parts = [call("read", f"call_{name}", name=name) for name in "ab"]
    await store(
        stage, asked(stage), called(stage, parts), answered(stage, (parts[1], "earlier"), author="docs")
    )
    app = an_app(last_model(), [read])
    stage.in_doubt = InDoubt.PARK
    await stage.lose(app, stuck)
    assert (await stage.attempt(app)).outcome is Outcome.IN_DOUBT
    assert ran == ["a"]

    await stage.database.values(
        "UPDATE triage.tool_calls SET state = 'settled', result = '{\"said\": 1}', settled_by = 'decision'"
    )
    model = last_model()
    assert (await stage.attempt(an_app(model, [read]))).outcome is Outcome.FINISHED
    assert ran == ["a"]
    assert seen(model) == {"call_a": {"said": 1}, "call_b": {"result": "earlier"}}


async def test_a_lost_call_of_a_tool_that_is_gone_is_the_models_to_make_up_for(stage: Stage) -> None:
    pages, model = Pages(), last_model()
    parts = [call("read", "call_0", name="a"), call("write", "call_1", name="b")]
    await store(
        stage, asked(stage), called(stage, parts), answered(stage, (parts[0], "earlier"), author="docs")
    )
    assert (await stage.attempt(an_app(model, [pages.read]))).outcome is Outcome.FINISHED
    assert results(model.asked[-1])[0] == {"result": "earlier"}
    assert "no tool with that name" in results(model.asked[-1])[1]["error"]


async def test_what_steers_the_agent_is_the_models_to_decide_again(stage: Stage) -> None:
    pages, model = Pages(), last_model()
    parts = [call("read", "call_0", name="a"), call("transfer_to_agent", "call_1", agent_name="gone")]
    await store(
        stage, asked(stage), called(stage, parts), answered(stage, (parts[0], "earlier"), author="docs")
    )
    assert (await stage.attempt(an_app(model, [pages.read]))).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"result": "earlier"}, NOT_DONE]
    assert pages.ran == []


async def test_a_lost_call_of_a_tool_that_is_named_as_one_of_adks_runs(stage: Stage) -> None:
    pages, model = Pages(), last_model()

    async def exit_loop(name: str) -> str:
        return await pages.list(name)

    parts = [call("read", "call_0", name="a"), call("exit_loop", "call_1", name="b")]
    await store(
        stage, asked(stage), called(stage, parts), answered(stage, (parts[0], "earlier"), author="docs")
    )
    assert (await stage.attempt(an_app(model, [pages.read, exit_loop]))).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"result": "earlier"}, {"result": "list b"}]


@pytest.mark.parametrize("pending", [None, {"ticket": 7}], ids=["nothing", "a ticket"])
async def test_a_lost_call_whose_answer_comes_later_is_begun_and_waited_for(
    stage: Stage, pending: dict[str, Any] | None
) -> None:
    begun: list[str] = []

    def ask_somebody() -> dict[str, Any] | None:
        begun.append("asked")
        return pending

    parts = [call("ask_somebody", "call_0"), call("read", "call_1", name="a")]
    event = called(stage, parts)
    event.long_running_tool_ids = {"call_0"}
    pages, model = Pages(), last_model()
    await store(stage, asked(stage), event)
    app = an_app(model, [LongRunningFunctionTool(ask_somebody), pages.read])
    assert (await stage.attempt(app)).outcome is Outcome.WAITING
    assert begun == ["asked"]
    await store(stage, answered(stage, (parts[0], "yes"), author="user"))
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert begun == ["asked"]
    assert pages.ran == [("read", "a")]
    assert seen(model) == {"call_0": {"result": "yes"}, "call_1": {"result": "page a"}}


async def test_a_lost_call_that_needs_a_confirmation_asks_for_it(stage: Stage) -> None:
    deleted: list[int] = []

    def delete(number: int) -> str:
        deleted.append(number)
        return "deleted"

    parts = [call("read", "call_0", name="a"), call("delete", "call_1", number=4)]
    await store(
        stage, asked(stage), called(stage, parts), answered(stage, (parts[0], "earlier"), author="docs")
    )
    pages, model = Pages(), last_model()
    app = an_app(model, [pages.read, FunctionTool(delete, require_confirmation=True)])
    assert (await stage.attempt(app)).outcome is Outcome.WAITING
    assert deleted == []
    (request,) = [
        part
        for event in await stage.stored()
        for part in (types.Part.model_validate(it) for it in event["content"]["parts"])
        if part.function_call is not None and part.function_call.name == "adk_request_confirmation"
    ]
    answer = answered(stage, (request, ""), author="user")
    for response in answer.get_function_responses():
        response.response = {"confirmed": True}
    await store(stage, answer)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert deleted == [4]
    assert pages.ran == []


def step(pages: "Stuck", name: str = "worker", **agent: Any) -> LlmAgent:
    model = ScriptedLlm(script=by_turn([call("read", name=it) for it in "abc"], say("Done.")))
    pages.models.append(model)
    return LlmAgent(name=name, model=model, tools=[pages.read], **agent)


def transferring(sub: LlmAgent) -> LlmAgent:
    model = ScriptedLlm(script=by_turn(call("transfer_to_agent", agent_name=sub.name)))
    return LlmAgent(name="root", model=model, sub_agents=[sub])


def delegating(sub: LlmAgent) -> LlmAgent:
    model = ScriptedLlm(script=by_turn(call(sub.name, request="Read them."), say("All done.")))
    return LlmAgent(name="root", model=model, sub_agents=[sub])


TREES: dict[str, Callable[["Stuck"], BaseNode]] = {
    "root": step,
    "step of a sequence": lambda pages: SequentialAgent(name="root", sub_agents=[step(pages)]),
    "step of a loop": lambda pages: LoopAgent(name="root", sub_agents=[step(pages)], max_iterations=1),
    "branch": lambda pages: ParallelAgent(name="root", sub_agents=[step(pages)]),
    "target of a transfer": lambda pages: transferring(step(pages)),
    "single turn of a sub-agent": lambda pages: delegating(
        step(pages, mode="single_turn", description="Reads.")
    ),
    "node of a workflow": lambda pages: Workflow(name="root", edges=[(START, step(pages))]),
}


START_OVER = ("single turn of a sub-agent", "node of a workflow")
"""What they said themselves they say again, so that part of their answers is never all that is stored."""


class Stuck:
    """A tool that gets stuck the first three times, as if its process died then."""

    def __init__(self) -> None:
        self.models: list[ScriptedLlm] = []
        self.ran: list[str] = []
        self.stuck = asyncio.Event()

    async def read(self, name: str) -> str:
        self.ran.append(name)
        if len(self.ran) == 3:
            self.stuck.set()
        if len(self.ran) <= 3:
            await asyncio.Event().wait()
        return f"page {name}"


@pytest.mark.filterwarnings("ignore:.*Agent is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("tree", "by_user"),
    [
        pytest.param(tree, by_user, id=f"{name}, by the {'user' if by_user else 'agent'}")
        for name, tree in TREES.items()
        for by_user in (True, False)
        if by_user or name not in START_OVER
    ],
)
async def test_wherever_an_agent_stands_its_lost_calls_run_and_the_answered_one_does_not(
    stage: Stage, tree: Callable[[Stuck], BaseNode], by_user: bool
) -> None:
    pages = Stuck()
    app = App(name="app", root_agent=tree(pages))
    await stage.lose(app, pages.stuck)
    (event,) = [
        event
        for event in map(Event.model_validate, await stage.stored())
        if any(it.name == "read" for it in event.get_function_calls())
    ]
    second = (event.content.parts or [])[1] if event.content else types.Part()
    given = answered(stage, (second, "earlier"), author="user" if by_user else event.author)
    given.branch, given.isolation_scope, given.node_info = (
        event.branch,
        event.isolation_scope,
        event.node_info,
    )
    await store(stage, given)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert sorted(pages.ran[3:]) == ["a", "c"]
    model = pages.models[0]
    assert len(model.asked) == 2
    assert sorted(answer["result"] for answer in results(model.asked[-1])) == ["earlier", "page a", "page c"]
