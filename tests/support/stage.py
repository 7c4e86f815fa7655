"""Attempts in the test's own process: a scripted model and the test's own tools, everything else real."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import Field

from support.databases import Database, a_run
from triage_agent.attempt.ending import Ending
from triage_agent.attempt.settings import AttemptSettings
from triage_agent.attempt.working import Interruptions, work
from triage_agent.replay.gate import Gate
from triage_contract.database.fence import OpenedAttempt
from triage_contract.database.rows import RunRow
from triage_contract.states import InDoubt, ToolKind

Reply = types.Part | Sequence[types.Part] | LlmResponse | Exception
Script = Callable[[LlmRequest], Sequence[Reply]]


def call(tool: str, call_id: str | None = None, /, **args: Any) -> types.Part:
    """A function call, with an id where the model is one that brings them."""
    return types.Part(function_call=types.FunctionCall(id=call_id, name=tool, args=args))


def say(text: str) -> types.Part:
    """A text."""
    return types.Part(text=text)


def by_turn(*replies: Reply) -> Script:
    """Answer by the number of replies that the request shows already: the same request gets the same answer."""

    def script(request: LlmRequest) -> Sequence[Reply]:
        turns = sum(content.role == "model" for content in request.contents)
        return [replies[min(turns, len(replies) - 1)]]

    return script


def results(request: LlmRequest) -> list[Any]:
    """The tool results that a request shows, in order."""
    parts = [part for content in request.contents for part in content.parts or []]
    return [part.function_response.response for part in parts if part.function_response is not None]


class ScriptedLlm(BaseLlm):
    """Answers by a script, and remembers what it was asked. A script gives several replies to one request in turn."""

    model: str = "scripted"
    script: Script
    asked: list[LlmRequest] = Field(default_factory=list)
    hang: Any = None
    """An ``asyncio.Event`` that is set when a request comes, which then gets no answer."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        contents = [content.model_copy(deep=True) for content in llm_request.contents]
        self.asked.append(LlmRequest(contents=contents))
        if self.hang is not None:
            self.hang.set()
            await asyncio.Event().wait()
        for reply in self.script(llm_request):
            if isinstance(reply, Exception):
                raise reply
            yield _response(reply)


def _response(reply: types.Part | Sequence[types.Part] | LlmResponse) -> LlmResponse:
    if isinstance(reply, LlmResponse):
        return reply.model_copy(deep=True)
    parts = [reply] if isinstance(reply, types.Part) else list(reply)
    return LlmResponse(
        content=types.Content(role="model", parts=[part.model_copy(deep=True) for part in parts]),
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=100, candidates_token_count=10, thoughts_token_count=5
        ),
    )


def an_app(model: BaseLlm, tools: Sequence[Any] = (), **agent: Any) -> App:
    """An app of one agent."""
    return App(name="app", root_agent=LlmAgent(name="docs", model=model, tools=list(tools), **agent))


@dataclass(slots=True, kw_only=True)
class Stage:
    """One run, and attempts at it."""

    database: Database
    run: RunRow
    tools: Mapping[str, ToolKind] = field(default_factory=dict)
    in_doubt: InDoubt = InDoubt.RETRY
    """Most tests are about what runs again, not about who decides that."""
    grace_seconds: float = 30.0
    gate: Gate = field(default_factory=Gate)
    events: list[Event] = field(default_factory=list)
    last: OpenedAttempt | None = None
    run_config: RunConfig | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the last attempt; 0: there was none."""
        return 0 if self.last is None else self.last.epoch

    async def attempt(self, app: App) -> Ending:
        """Carry out the next attempt to its end."""
        await self.database.close(self.run, self.epoch)
        attempt = self.last = await self.database.open(self.run, observed_epoch=self.epoch)
        settings = AttemptSettings(
            run_id=self.run.id,
            epoch=attempt.epoch,
            token=attempt.token,
            database=self.database.url,
            app="",
            tools=self.tools,
            in_doubt=self.in_doubt,
            grace_seconds=self.grace_seconds,
            heartbeat_seconds=1.0,
            memory_limit_bytes=None,
            termination_log=Path("/dev/null"),
        )
        self.events.clear()
        self.gate = Gate()
        return await work(
            settings,
            serial=attempt.serial,
            load=lambda: app,
            interruptions=Interruptions(gate=self.gate, fenced=asyncio.Event()),
            on_event=self.events.append,
            configure=lambda: self.run_config,
        )

    async def lose(self, app: App, at: asyncio.Event) -> None:
        """Carry out the next attempt until ``at`` is set, and then no further: as far as stored, it was killed."""
        attempt = asyncio.create_task(self.attempt(app))
        reached = asyncio.create_task(at.wait())
        await asyncio.wait({attempt, reached}, return_when=asyncio.FIRST_COMPLETED)
        assert not attempt.done(), attempt.result()
        attempt.cancel()
        await asyncio.wait({attempt})

    async def calls(self) -> list[tuple[object, ...]]:
        """Tool, state, result and times begun of each call, by tool: those of one reply begin in any order."""
        return await self.database.values(
            "SELECT tool, state, result, begun_times FROM triage.tool_calls ORDER BY tool, begun_at"
        )

    async def stored(self) -> list[dict[str, Any]]:
        """The stored events."""
        rows = await self.database.values("SELECT event_data FROM events ORDER BY timestamp, id")
        return [row[0] for row in rows]  # type: ignore[misc]

    async def last_attempt(self, *columns: str) -> tuple[object, ...]:
        """Columns of the last attempt's row."""
        (row,) = await self.database.values(
            f"SELECT {', '.join(columns)} FROM triage.attempts ORDER BY epoch DESC LIMIT 1"
        )
        return row


@pytest.fixture
def stage(database: Database) -> Stage:
    """A run that nothing was done about."""
    return Stage(database=database, run=a_run())
