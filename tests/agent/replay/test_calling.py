"""A call that has a result is answered from the journal, and leaves behind what it left the first time."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.platform.time import get_time
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from google.genai import types
from sqlalchemy import text

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, results, say
from triage_agent.attempt.running import open_session
from triage_agent.replay.sessions import FencedSessionService
from triage_contract.database.engine import open_engine
from triage_contract.names import REPLAYED_METADATA
from triage_contract.states import InDoubt, Outcome

CALLED_TWICE = by_turn([call("first"), call("second")], say("Done."))


class Tools:
    """Two tools of which the second can be told to stay in its call for ever, once the first is journaled."""

    def __init__(self, stage: Stage, result: Any = "one") -> None:
        self.stage = stage
        self.result = result
        self.ran: list[str] = []
        self.ids: list[str | None] = []
        self.stuck = asyncio.Event()
        self.is_stuck = True

    async def first(self, tool_context: ToolContext) -> Any:
        self.ran.append("first")
        tool_context.state["seen"] = {"first": 1}
        return self.result

    async def second(self, tool_context: ToolContext) -> str:
        self.ran.append("second")
        self.ids.append(tool_context.function_call_id)
        while self.is_stuck:
            if ("first", "done") in [row[:2] for row in await self.stage.calls()]:
                self.stuck.set()
            await asyncio.sleep(0.01)
        return "two"


async def test_of_parallel_calls_the_finished_one_does_not_run_again(stage: Stage) -> None:
    tools, model = Tools(stage), ScriptedLlm(script=CALLED_TWICE)
    app = an_app(model, [tools.first, tools.second])
    await stage.lose(app, tools.stuck)
    assert len(await stage.stored()) == 2  # the input and the calls, no result
    tools.is_stuck = False

    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert tools.ran == ["first", "second", "second"]
    assert len(set(tools.ids)) == 1
    assert results(model.asked[-1]) == [{"result": "one"}, {"result": "two"}]
    assert len(model.asked) == 2
    answered = next(event for event in stage.events if event.get_function_responses())
    assert answered.actions.state_delta == {"seen": {"first": 1}}
    assert REPLAYED_METADATA not in (answered.custom_metadata or {})  # the second one is new
    assert await stage.calls() == [
        ("first", "done", {"result": "one"}, 1),
        ("second", "done", {"result": "two"}, 2),
    ]
    suppressed = "SELECT labels->>'tool', value FROM triage.totals WHERE name = 'duplicates_suppressed'"
    assert await stage.database.values(suppressed) == [("first", 1.0)]


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        ({"text": "a\0b\udcff"}, {"text": "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"}),
        ({"value": float("nan"), "other": object()}, {"value": "nan", "other": "<object>"}),
        (["a\0"], {"result": ["a\N{REPLACEMENT CHARACTER}"]}),
        (None, {"result": None}),
    ],
    ids=["characters", "objects", "list", "none"],
)
async def test_what_cannot_be_stored_is_stored_all_the_same(stage: Stage, result: Any, stored: Any) -> None:
    tools, model = Tools(stage, result), ScriptedLlm(script=CALLED_TWICE)
    app = an_app(model, [tools.first, tools.second])
    await stage.lose(app, tools.stuck)
    tools.is_stuck = False
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert tools.ran == ["first", "second", "second"]
    assert results(model.asked[-1])[0] == stored


async def test_media_are_given_again_as_media(stage: Stage) -> None:
    image = types.Part(inline_data=types.Blob(data=b"\xff\xfe\0image", mime_type="image/png"))
    tools, model = Tools(stage, {"title": "A page", "shown": [image]}), ScriptedLlm(script=CALLED_TWICE)
    app = an_app(model, [tools.first, tools.second])
    await stage.lose(app, tools.stuck)
    tools.is_stuck = False
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert tools.ran.count("first") == 1
    assert results(model.asked[-1])[0] == {"title": "A page"}
    shown = [
        media.inline_data
        for event in stage.events
        for response in event.get_function_responses()
        for media in response.parts or []
    ]
    assert [(it.data, it.mime_type) for it in shown if it is not None] == [(b"\xff\xfe\0image", "image/png")]


async def test_state_that_cannot_be_stored_is_stored_all_the_same(stage: Stage) -> None:
    def remember(tool_context: ToolContext) -> str:
        tool_context.state["odd"] = {"text": "\0", "object": object(), "number": float("inf")}
        return "ok"

    app = an_app(ScriptedLlm(script=by_turn(call("remember"), say("Done."))), [remember])
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    ((state,),) = await stage.database.values("SELECT state FROM sessions")
    assert isinstance(state, dict)
    assert state["odd"]["text"] == "\N{REPLACEMENT CHARACTER}"


async def test_an_unknown_tool_is_the_models_mistake_to_correct(stage: Stage) -> None:
    model = ScriptedLlm(script=by_turn(call("nonsense"), say("Done.")))
    assert (await stage.attempt(an_app(model))).outcome is Outcome.FINISHED
    (result,) = results(model.asked[-1])
    assert "no tool with that name" in result["error"]
    assert await stage.calls() == []


async def test_a_transfer_is_left_to_adk(stage: Stage) -> None:
    transfer = by_turn(call("transfer_to_agent", agent_name="sub"))
    sub = LlmAgent(name="sub", model=ScriptedLlm(script=by_turn(say("Done."))))
    root = LlmAgent(name="root", model=ScriptedLlm(script=transfer), sub_agents=[sub])
    assert (await stage.attempt(App(name="app", root_agent=root))).outcome is Outcome.FINISHED
    assert await stage.calls() == []
    assert [event.author for event in stage.events if event.is_final_response() and event.content] == ["sub"]


@pytest.mark.parametrize("name", ["exit_loop", "finish_task", "set_model_response", "transfer_to_agent"])
async def test_a_tool_that_is_named_as_one_of_adks_is_journaled(stage: Stage, name: str) -> None:
    ran: list[str] = []
    begun = asyncio.Event()

    async def own() -> None:
        ran.append(name)
        begun.set()
        await asyncio.Event().wait()

    own.__name__ = name
    stage.in_doubt = InDoubt.PARK
    app = an_app(ScriptedLlm(script=by_turn(call(name), say("Done."))), [own])
    await stage.lose(app, begun)
    assert [row[:2] for row in await stage.calls()] == [(name, "begun")]
    assert (await stage.attempt(app)).outcome is Outcome.IN_DOUBT
    assert ran == [name]


async def test_synchronous_tools_are_journaled_too(stage: Stage) -> None:
    def first() -> str:
        return "one"

    app = an_app(ScriptedLlm(script=by_turn(call("first"), say("Done."))), [first])
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert await stage.calls() == [("first", "done", {"result": "one"}, 1)]


@pytest.mark.parametrize("is_node", [False, True], ids=["agent", "node"])
async def test_a_tool_whose_answer_comes_later_is_not_answered_by_its_journal(
    stage: Stage, is_node: bool
) -> None:
    """ADK passes over its siblings once it has its answer."""
    tools = Tools(stage)
    asked: list[str] = []

    def ask_somebody() -> None:
        asked.append("asked")

    model = ScriptedLlm(script=by_turn([call("ask_somebody"), call("first"), call("second")], say("Done.")))
    waiting = [LongRunningFunctionTool(ask_somebody), tools.first, tools.second]
    agent = LlmAgent(name="docs", model=model, tools=waiting)
    root = Workflow(name="flow", edges=[(START, agent)]) if is_node else agent
    app = App(name="app", root_agent=root)
    await stage.lose(app, tools.stuck)
    tools.is_stuck = False
    assert (await stage.attempt(app)).outcome is Outcome.WAITING

    (calls,) = [event for event in await stage.stored() if event["author"] == "docs"]
    request = types.FunctionCall.model_validate(calls["content"]["parts"][0]["function_call"])
    await answer(stage, request, {"said": "yes"})
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert asked == ["asked"]
    assert sorted(tools.ran) == ["first", "second", "second"]
    assert results(model.asked[-1]) == [{"said": "yes"}, {"result": "one"}, {"result": "two"}]
    ((state,),) = await stage.database.values("SELECT state FROM sessions")
    assert state == {"seen": {"first": 1}}


async def test_after_lost_events_the_journal_alone_repeats_nothing(stage: Stage) -> None:
    """As after a restored backup of ADK's tables: what was called is called again, and nothing runs."""
    tools = Tools(stage)
    tools.is_stuck = False
    asked: list[str] = []

    def ask_somebody() -> None:
        asked.append("asked")

    model = ScriptedLlm(script=by_turn([call("first"), call("ask_somebody")], say("Done.")))
    app = an_app(model, [tools.first, LongRunningFunctionTool(ask_somebody)])
    assert (await stage.attempt(app)).outcome is Outcome.WAITING
    async with stage.database.engine.begin() as connection:
        await connection.execute(text("SET LOCAL session_replication_role = replica"))  # past the fence
        await connection.execute(text("DELETE FROM events WHERE event_data ->> 'author' <> 'user'"))
    assert (await stage.attempt(app)).outcome is Outcome.WAITING
    assert (tools.ran, asked, len(model.asked)) == (["first"], ["asked"], 1)
    answers = [response.name for event in stage.events for response in event.get_function_responses()]
    assert answers == ["first"]


async def test_a_call_that_waits_for_a_confirmation_runs_once_it_has_one(stage: Stage) -> None:
    ran: list[int] = []

    def delete(number: int) -> str:
        ran.append(number)
        return "deleted"

    model = ScriptedLlm(script=by_turn(call("delete", number=4), say("Done.")))
    app = an_app(model, [FunctionTool(delete, require_confirmation=True)])
    assert (await stage.attempt(app)).outcome is Outcome.WAITING
    assert [row[:2] for row in await stage.calls()] == [("delete", "gated")]
    request = next(
        request
        for event in stage.events
        for request in event.get_function_calls()
        if request.name == "adk_request_confirmation"
    )
    await answer(stage, request, {"confirmed": True})
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert ran == [4]
    assert await stage.calls() == [("delete", "done", {"result": "deleted"}, 2)]


async def test_an_id_that_a_session_from_before_us_repeats_is_another_call(stage: Stage) -> None:
    ran: list[str] = []

    def read_page(name: str) -> str:
        ran.append(name)
        return name

    model = ScriptedLlm(script=lambda _: [say("Done.")])
    app = an_app(model, [read_page])
    for name in ("a", "b"):
        stage.run = replace(stage.run, id=uuid4(), invocation_id=f"inv-{name}", message=None)
        parts = [types.Part(text="Read."), call("read_page", "call_0", name=name)]
        await append(
            stage, *(types.Content(role="user" if part.text else "model", parts=[part]) for part in parts)
        )
        assert (await stage.attempt(app)).outcome is Outcome.FINISHED
        await stage.database.values("UPDATE triage.runs SET state = 'succeeded'")
    assert ran == ["a", "b"]


async def answer(stage: Stage, request: types.FunctionCall, response: dict[str, Any]) -> None:
    """Append a person's answer to the session."""
    part = types.Part(
        function_response=types.FunctionResponse(id=request.id, name=request.name, response=response)
    )
    await append(stage, types.Content(role="user", parts=[part]))


async def append(stage: Stage, *contents: types.Content) -> None:
    """Append events to the session, through the fence of an attempt of its own."""
    attempt = stage.last = await stage.database.open(stage.run, observed_epoch=stage.epoch)
    engine = open_engine(stage.database.url, application="appending", token=attempt.token)
    service = FencedSessionService(engine, stage.database.url)
    session = await open_session(service, stage.run.session)
    for content in contents:
        author = "user" if content.role == "user" else "docs"
        event = Event(
            invocation_id=stage.run.invocation_id, author=author, content=content, timestamp=get_time()
        )
        await service.append_event(session, event)
    await engine.dispose()
    await stage.database.close(stage.run, attempt.epoch)
