"""Record sessions in which a release of google-adk left calls without an answer.

    PYTHON_WITH_SOME_ADK hack/record_lost_calls.py

Writes ``tests/agent/attempt/left_behind/<release>-<name>.json``: the events as ADK stored them in SQLite. It runs with
google-adk 2.9 or later and aiosqlite, and needs nothing of this project. Ids and times count up.
"""

import asyncio
import itertools
import json
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.platform.time import set_time_provider
from google.adk.platform.uuid import set_id_provider
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, Session
from google.adk.version import __version__
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

FOLDER = Path(__file__).parent.parent / "tests" / "agent" / "attempt" / "left_behind"
INVOCATION = "inv-left-behind"
KEY: dict[str, Any] = {"app_name": "app", "user_id": "user", "session_id": "session"}
CALLS = [("read", "a"), ("look", "b"), ("read", "c")]


class Model(BaseLlm):
    """Calls three tools at once."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [
            Part(function_call=FunctionCall(id=f"call_{name}", name=tool, args={"name": name}))
            for tool, name in CALLS
        ]
        yield LlmResponse(content=Content(role="model", parts=parts))


def app(broken: set[str]) -> App:
    """An agent whose tools raise when they are asked for something broken."""

    def result(name: str) -> str:
        if name in broken:
            raise ValueError(name)
        return f"earlier {name}"

    async def read(name: str) -> str:
        return result(name)

    async def look(name: str) -> str:
        return result(name)

    root = LlmAgent(name="docs", model=Model(model="scripted"), tools=[read, look])
    return App(name="app", root_agent=root, resumability_config=ResumabilityConfig(is_resumable=True))


async def play(runner: Runner, *, stop_after: int | None = None, **message: Any) -> None:
    """Run the invocation; ``stop_after``: the number of events after which its process is killed."""
    running = runner.run_async(
        user_id=KEY["user_id"], session_id=KEY["session_id"], invocation_id=INVOCATION, **message
    )
    with suppress(ValueError):  # a broken tool's
        async with aclosing(running) as events:
            count = 0
            async for _ in events:
                count += 1
                if count == stop_after:
                    return


async def reload(service: DatabaseSessionService) -> Session:
    """Read the session as the next process would."""
    session = await service.get_session(**KEY)
    assert session is not None
    return session


async def record(broken: set[str], *, is_killed: bool, answered: str | None, delta: bool) -> list[Any]:
    """Start a run, lose it, and do what is then done to it from outside."""
    ticks, ids = itertools.count(1), itertools.count(1)
    set_time_provider(lambda: 1_780_000_000.0 + next(ticks))
    set_id_provider(lambda: f"{next(ids):08d}")
    with tempfile.TemporaryDirectory() as folder:
        service = DatabaseSessionService(f"sqlite+aiosqlite:///{folder}/sessions.db")
        session = await service.create_session(**KEY)
        message = Content(role="user", parts=[Part(text="Read them.")])
        await service.append_event(session, Event(author="user", invocation_id=INVOCATION, content=message))
        await play(Runner(app=app(broken), session_service=service), stop_after=1 if is_killed else None)
        session = await reload(service)
        if answered is not None:
            tool = {name: tool for tool, name in CALLS}[answered]
            response = FunctionResponse(
                id=f"call_{answered}", name=tool, response={"result": f"earlier {answered}"}
            )
            content = Content(role="user", parts=[Part(function_response=response)])
            await service.append_event(
                session, Event(author="user", invocation_id=INVOCATION, content=content)
            )
        if delta:
            await play(
                Runner(app=app(broken), session_service=service), stop_after=1, state_delta={"seen": True}
            )
        stored = (await reload(service)).events
        await service.db_engine.dispose()
    return [event.model_dump(mode="json", exclude_none=True) for event in stored]


RECORDINGS: dict[str, dict[str, Any]] = {
    "one_raised": {"broken": {"b"}, "is_killed": False, "answered": None, "delta": False},
    "two_raised": {"broken": {"b", "c"}, "is_killed": False, "answered": None, "delta": False},
    "killed": {"broken": set(), "is_killed": True, "answered": None, "delta": False},
    "killed_and_answered": {"broken": set(), "is_killed": True, "answered": "a", "delta": False},
    "killed_and_given_state": {"broken": {"a", "b", "c"}, "is_killed": True, "answered": None, "delta": True},
}


async def main() -> None:
    """Record all."""
    FOLDER.mkdir(exist_ok=True)
    for name, how in RECORDINGS.items():
        path = FOLDER / f"{__version__}-{name}.json"
        path.write_text(json.dumps(await record(**how), indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
