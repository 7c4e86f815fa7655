"""Record the events that google-adk stores for each shape of agent.

    python hack/record_golden.py [NAME ...]

Writes ``tests/contract/verdict/golden/<name>.json``: the root's name and kind, and the invocation's rows of ADK's
``events`` table, column ``event_data``, in the order of their commits. Models are scripted, ids and times count up, so
that a second recording changes nothing. The verdict on each prefix is not recorded: it is written by hand in
``<name>.txt``.
"""

import asyncio
import itertools
import json
import logging
import sys
import tempfile
import warnings
from contextlib import aclosing
from pathlib import Path
from typing import Any

from google.adk.apps import App
from google.adk.apps.app import ResumabilityConfig
from google.adk.events import Event
from google.adk.platform.time import set_time_provider
from google.adk.platform.uuid import set_id_provider
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, DatabaseSessionService, Session
from google.genai.types import Content
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from support.golden_agents import AGENTS  # noqa: E402
from support.golden_turns import Recording, Turn, say  # noqa: E402

GOLDEN = TESTS / "contract" / "verdict" / "golden"
INVOCATION = "inv-golden"
APP, USER = "golden", "triage"


async def record(recording: Recording, url: str) -> list[Any]:
    """Play a recording's turns in one invocation of a fresh database; return the events as they were committed."""
    ticks, ids = itertools.count(1), itertools.count(1)
    set_time_provider(lambda: 1_790_000_000.0 + next(ticks))
    set_id_provider(lambda: f"{next(ids):08d}")
    service = DatabaseSessionService(url)
    try:
        session = await service.create_session(app_name=APP, user_id=USER, session_id="run-golden")
        report = Content(role="user", parts=[say("The tokens page says that deploy tokens never expire.")])
        await service.append_event(session, Event(author="user", invocation_id=INVOCATION, content=report))
        app = App(
            name=APP,
            root_agent=recording.root,
            resumability_config=ResumabilityConfig(is_resumable=True),
        )
        runner = Runner(app=app, session_service=service)
        for turn in recording.turns:
            await play(runner, turn, await reload(service, session))
    finally:
        await service.close()
    engine = create_async_engine(url)
    try:
        async with engine.connect() as connection:
            rows = await connection.scalars(text("SELECT event_data FROM events ORDER BY rowid"))
            return [json.loads(row) for row in rows]
    finally:
        await engine.dispose()


async def reload(service: BaseSessionService, session: Session) -> Session:
    """Read a session again, as the next process would."""
    loaded = await service.get_session(app_name=APP, user_id=USER, session_id=session.id)
    assert loaded is not None
    return loaded


async def play(runner: Runner, turn: Turn, session: Session) -> None:
    """Run the invocation once. An error ends the turn: what it left in the database is what is recorded."""
    abort = asyncio.Event()
    events = runner.run_async(
        user_id=session.user_id,
        session_id=session.id,
        invocation_id=INVOCATION,
        new_message=turn.message(session.events),
        state_delta=turn.state_delta,
        abort_signal=abort,
    )
    try:
        async with aclosing(events):
            for number in itertools.count(1):
                if await anext(events, None) is None:
                    break
                if number == turn.stop_after:
                    if not turn.abort:
                        break
                    abort.set()
    except RuntimeError as error:
        print(f"  the turn ended with: {error}")


def write(name: str, recording: Recording, events: list[Any]) -> None:
    """Write a recording, an event a line."""
    root = {"name": recording.root.name, "kind": recording.kind}
    lines = ",\n".join(f"    {json.dumps(event, sort_keys=True)}" for event in events)
    (GOLDEN / f"{name}.json").write_text(
        f'{{\n  "root": {json.dumps(root)},\n  "events": [\n{lines}\n  ]\n}}\n'
    )


def main() -> None:
    """Record the named runs, or all."""
    warnings.simplefilter("ignore")
    logging.disable()
    for name in sys.argv[1:] or AGENTS:
        print(name)
        with tempfile.TemporaryDirectory() as folder:
            recording = AGENTS[name]()
            write(name, recording, asyncio.run(record(recording, f"sqlite+aiosqlite:///{folder}/golden.db")))


if __name__ == "__main__":
    main()
