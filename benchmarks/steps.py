"""What fence and journals add to a model call, a tool call and an event, beside bare ADK on the same Postgres.

Both sides run the same agent with the same scripted replies, in turn, in one process: A B A B ….
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types

from benchmarks.figures import Measured
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


def look(place: int) -> dict[str, Any]:
    """Look at a place."""
    return {"seen": place}


def _app() -> App:
    agent = LlmAgent(name="bench", model=_Script(), instruction="Look around.", tools=[look])
    return App(name="bench", root_agent=agent, resumability_config=ResumabilityConfig(is_resumable=True))


@dataclass(slots=True)
class _Times:
    runs: list[float] = field(default_factory=list)
    appends: list[float] = field(default_factory=list)
    writes: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def measure(self, into: list[float]) -> Any:
        began = time.perf_counter()
        yield
        into.append(time.perf_counter() - began)


def _timed(service: BaseSessionService, times: _Times) -> BaseSessionService:
    append = service.append_event

    async def append_event(*args: Any, **kwargs: Any) -> Any:
        with times.measure(times.appends):
            return await append(*args, **kwargs)

    service.append_event = append_event  # type: ignore[method-assign]
    return service


async def _bare_run(service: BaseSessionService, times: _Times) -> None:
    session = await service.create_session(app_name="bench", user_id="user")
    runner = Runner(app=_app(), session_service=service)
    message = types.Content(role="user", parts=[types.Part(text="Go.")])
    with times.measure(times.runs):
        async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
            pass


async def _our_run(url: DatabaseUrl, times: _Times) -> None:
    run_id = uuid4()
    run = RunRow(
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
    operator = open_engine(url, application="bench")
    attempt = await open_attempt(
        operator, run, observed_epoch=0, attempt=NewAttempt(pod=None, image=None, memory_limit_bytes=None)
    )
    await operator.dispose()
    engine = open_engine(url, application=f"triage-agent/{attempt.serial}", token=attempt.token)
    connection = PreparedConnection(url, application=f"triage-agent/{attempt.serial}")
    record = _timed_record(AttemptRecord(connection, serial=attempt.serial, token=attempt.token), times)
    service = _timed(AttemptSessionService(engine, url, record=record, own=run.session), times)
    session = await open_session(service, run.session)
    assert run.message is not None
    plugins = replaying_plugins(
        journal=record,
        replies=ReplyBook(run.invocation_id, (), ()),
        declared={},
        gate=Gate(),
        trouble=Trouble(),
    )
    with times.measure(times.runs):
        await append_input(service, session, run.invocation_id, run.message)
        async for _ in run_events(_app(), service, run.session, run.invocation_id, plugins):
            pass
    await connection.close()
    await engine.dispose()


def _timed_record(record: AttemptRecord, times: _Times) -> AttemptRecord:
    for name in ("begin_call", "end_call", "store_reply"):
        write = getattr(record, name)
        into = times.writes.setdefault(name, [])

        def timed(write: Callable[..., Any] = write, into: list[float] = into) -> Callable[..., Any]:
            async def call(*args: Any, **kwargs: Any) -> Any:
                with times.measure(into):
                    return await write(*args, **kwargs)

            return call

        setattr(record, name, timed())
    return record


@asynccontextmanager
async def _bare_service(dsn: str) -> AsyncIterator[BaseSessionService]:
    service = DatabaseSessionService(dsn.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        await service.prepare_tables()
        yield service
    finally:
        await service.close()


async def measure_steps(bare_dsn: str, our_url: DatabaseUrl, *, rounds: int) -> list[Measured]:
    """Run both sides in turn ``rounds`` times, after a first round of each that does not count.

    ``bare_dsn`` is an empty database, ``our_url`` a migrated one, on the same server.
    """
    bare, ours = _Times(), _Times()
    async with _bare_service(bare_dsn) as service:
        await _bare_run(service, _Times())
        await _our_run(our_url, _Times())
        timed = _timed(service, bare)
        for _ in range(rounds):
            await _bare_run(timed, bare)
            await _our_run(our_url, ours)
    return [
        Measured(name="bare ADK: a step (model call, tool call, two events)", seconds=_per_step(bare.runs)),
        Measured(name="fenced and journaled: the same step", seconds=_per_step(ours.runs)),
        Measured(name="bare ADK: an event", seconds=bare.appends),
        Measured(name="fenced: an event", seconds=ours.appends),
        Measured(name="added to a model call: its reply journaled", seconds=ours.writes["store_reply"]),
        Measured(name="added to a tool call: begun", seconds=ours.writes["begin_call"]),
        Measured(name="added to a tool call: done", seconds=ours.writes["end_call"]),
    ]


def _per_step(runs: list[float]) -> list[float]:
    return [seconds / STEPS for seconds in runs]
