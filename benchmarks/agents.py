"""The agent that the benchmarks run, and an attempt of ours at it."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.session import Session
from google.genai import types

from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.running import append_input, open_session, run_events
from triage_agent.attempt.sessions import AttemptSessionService
from triage_agent.replay.gate import Gate
from triage_agent.replay.plugins import replaying_plugins
from triage_agent.replay.replies import ReplyBook
from triage_agent.replay.trouble import Trouble
from triage_contract.database.engine import open_engine
from triage_contract.database.fence import NewAttempt, open_attempt
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.rows import RunRow, SessionKey
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import RunState

STEPS = 20
"""Model and tool calls of one run. Each step appends two events."""


class _Script(BaseLlm):
    """Calls the tool a number of times, then says that it is done."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        done = sum(1 for content in llm_request.contents for p in content.parts or [] if p.function_response)
        part = (
            types.Part(text="Done.")
            if done >= STEPS
            else types.Part(function_call=types.FunctionCall(name="look", args={"place": done}))
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def look(place: int) -> dict[str, Any]:
    """Look at a place."""
    return {"seen": place}


def build_app(*plugins: BasePlugin, tool: Any = look) -> App:
    """Build the app anew."""
    agent = LlmAgent(name="bench", model=_Script(), instruction="Look around.", tools=[tool])
    resumable = ResumabilityConfig(is_resumable=True)
    return App(name="bench", root_agent=agent, resumability_config=resumable, plugins=list(plugins))


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt of ours, opened and not begun."""

    run: RunRow
    record: AttemptRecord
    service: AttemptSessionService

    async def begin(self) -> Session:
        """Connect, and create its session."""
        return await open_session(self.service, self.run.session)

    async def work(self, session: Session) -> None:
        """Run it to its end, as a pod does that has its session."""
        assert self.run.message is not None
        plugins = replaying_plugins(
            journal=self.record,
            replies=ReplyBook(self.run.invocation_id, (), ()),
            declared={},
            gate=Gate(),
            trouble=Trouble(),
        )
        await append_input(self.service, session, self.run.invocation_id, self.run.message)
        self.service.hand_over(session)
        async for _ in run_events(
            build_app(), self.service, self.run.session, self.run.invocation_id, plugins
        ):
            pass


@asynccontextmanager
async def open_bare_service(dsn: str) -> AsyncIterator[BaseSessionService]:
    """Give ADK's own session service, as its documentation opens it."""
    service = DatabaseSessionService(dsn.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        await service.prepare_tables()
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def open_our_attempt(
    url: DatabaseUrl, connection: PreparedConnection | None = None
) -> AsyncIterator[Attempt]:
    """Open an attempt at a new run, as an operator does. ``connection`` None: it gets one of its own."""
    run = _new_run()
    operator = open_engine(url, application="bench")
    opened = await open_attempt(
        operator, run, observed_epoch=0, attempt=NewAttempt(pod=None, image=None, memory_limit_bytes=None)
    )
    await operator.dispose()
    application = f"triage-agent/{opened.serial}"
    engine = open_engine(url, application=application, token=opened.token)
    own = PreparedConnection(url, application=application)
    record = AttemptRecord(connection or own, serial=opened.serial, token=opened.token)
    service = AttemptSessionService(engine, url, record=record, own=run.session)
    try:
        yield Attempt(run=run, record=record, service=service)
    finally:
        await own.close()
        await engine.dispose()


def _new_run() -> RunRow:
    run_id = uuid4()
    return RunRow(
        id=run_id,
        cluster_id="bench",
        namespace="bench",
        name=str(run_id),
        agent="bench",
        session=SessionKey(app_name="bench", user_id="user", session_id=f"run-{run_id}"),
        invocation_id=f"inv-{run_id}",
        message={"parts": [{"text": "Go."}]},
        root=None,
        state=RunState.ACTIVE,
        reason=None,
        created_at=None,
        ended_at=None,
    )
