"""Agents that want to be run in another way than ADK's default: streamed replies, tools in a thread pool."""

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator
from types import ModuleType

import pytest
from google.adk.agents._streaming_mode import StreamingMode
from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, results, say
from triage_agent.apps import load_run_config
from triage_agent.exceptions import AppError
from triage_contract.states import Outcome


class StreamingLlm(ScriptedLlm):
    """Says each text in two pieces, and then as a whole."""

    streamed: int = 0

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        async for reply in super().generate_content_async(llm_request, stream):
            texts = [part.text for part in (reply.content.parts or []) if part.text] if reply.content else []
            if stream and texts:
                self.streamed += 1
                for piece in (texts[0][:2], texts[0][2:]):
                    part = types.Part(text=piece)
                    yield LlmResponse(content=types.Content(role="model", parts=[part]), partial=True)
            yield reply


async def test_a_streamed_reply_is_asked_for_once_and_stored_whole(stage: Stage) -> None:
    stuck, is_stuck = asyncio.Event(), True

    async def wait() -> str:
        stuck.set()
        while is_stuck:
            await asyncio.sleep(0.01)
        return "waited"

    model = StreamingLlm(script=by_turn([say("Let me see."), call("wait")], say("Done.")))
    stage.run_config = RunConfig(streaming_mode=StreamingMode.SSE)
    app = an_app(model, [wait])
    await stage.lose(app, stuck)
    is_stuck = False
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert (model.streamed, len(model.asked)) == (2, 2)
    texts = [
        part["text"]
        for event in await stage.stored()
        for part in (event.get("content") or {"parts": []})["parts"]
        if "text" in part and event["author"] != "user"
    ]
    assert texts == ["Let me see.", "Done."]


async def test_a_call_in_a_thread_pool_is_journaled_like_any_other(stage: Stage) -> None:
    threads, stuck, go_on = [], asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def first() -> str:
        threads.append(threading.current_thread())
        return "one"

    def second() -> str:
        loop.call_soon_threadsafe(stuck.set)
        go_on.wait()
        return "two"

    model = ScriptedLlm(script=by_turn(call("first"), call("second"), say("Done.")))
    stage.run_config = RunConfig(tool_thread_pool_config=ToolThreadPoolConfig(max_workers=2))
    app = an_app(model, [first, second])
    await stage.lose(app, stuck)
    go_on.set()
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
    assert results(model.asked[-1]) == [{"result": "one"}, {"result": "two"}]


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of a user's."""
    module = ModuleType("an_own_agent")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_a_module_without_one_is_run_as_adk_does(module: ModuleType) -> None:
    assert load_run_config("an_own_agent:app") is None


def test_a_module_says_how_its_app_is_run(module: ModuleType) -> None:
    module.run_config = RunConfig(max_llm_calls=3)  # type: ignore[attr-defined]
    assert load_run_config("an_own_agent:app") == RunConfig(max_llm_calls=3)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"max_llm_calls": 3}, "run_config is a dict, not a RunConfig"),
        (RunConfig(streaming_mode=StreamingMode.BIDI), "a live conversation"),
    ],
)
def test_what_cannot_be_run_is_refused(module: ModuleType, config: object, message: str) -> None:
    module.run_config = config  # type: ignore[attr-defined]
    with pytest.raises(AppError, match=message):
        load_run_config("an_own_agent:app")
