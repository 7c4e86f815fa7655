"""What a step of one model and one tool call takes: bare ADK in memory and on Postgres, with the DBOS plugin, and ours.

All sides run the same agent with the same scripted replies, in turn, in one process: A B C A B C …, then D.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from benchmarks.apps import STEPS, build_app, open_bare_service
from benchmarks.attempts import Attempt, open_our_attempt
from benchmarks.durable import open_dbos
from benchmarks.figures import Measured
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.url import DatabaseUrl

GO = types.Content(role="user", parts=[types.Part(text="Go.")])


@dataclass(slots=True)
class _Times:
    """Seconds of whole runs, of appends, and of each write of a journal."""

    runs: list[float] = field(default_factory=list)
    writes: dict[str, list[float]] = field(default_factory=dict)

    @contextmanager
    def measure(self, into: list[float]) -> Iterator[None]:
        began = time.perf_counter()
        yield
        into.append(time.perf_counter() - began)

    def clear(self) -> None:
        """Forget what was measured."""
        self.runs.clear()
        for writes in self.writes.values():
            writes.clear()

    def watch(self, owner: object, name: str) -> None:
        """Measure a method of an object."""
        write: Callable[..., Awaitable[Any]] = getattr(owner, name)
        into = self.writes.setdefault(name, [])

        async def timed(*args: Any, **kwargs: Any) -> Any:
            with self.measure(into):
                return await write(*args, **kwargs)

        setattr(owner, name, timed)


async def _bare_run(service: BaseSessionService, times: _Times) -> None:
    session = await service.create_session(app_name="bench", user_id="user")
    runner = Runner(app=build_app(), session_service=service)
    with times.measure(times.runs):
        async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=GO):
            pass


async def _our_run(attempt: Attempt, times: _Times) -> None:
    times.watch(attempt.service, "append_event")
    for name in ("begin_call", "end_call", "store_reply"):
        times.watch(attempt.record, name)
    session = await attempt.begin()
    with times.measure(times.runs):
        await attempt.work(session)


async def measure_steps(bare_dsn: str, dbos_dsn: str, our_url: DatabaseUrl, *, rounds: int) -> list[Measured]:
    """Run all sides in turn ``rounds`` times, after a first round of each that does not count.

    DBOS comes after the others, whom its threads would hold up. ``bare_dsn`` and ``dbos_dsn`` are empty databases,
    ``our_url`` a migrated one, on the same server. Each side has its connection before it is measured.
    """
    memory, bare, dbos, ours = _Times(), _Times(), _Times(), _Times()
    async with open_bare_service(bare_dsn) as service:
        connection = PreparedConnection(our_url, application="bench")
        bare.watch(service, "append_event")
        for number in range(rounds + 1):
            await _bare_run(InMemorySessionService(), memory)
            await _bare_run(service, bare)
            async with open_our_attempt(our_url, connection) as attempt:
                await _our_run(attempt, ours)
            if number == 0:
                for times in (memory, bare, ours):
                    times.clear()
        await connection.close()
    async with open_bare_service(bare_dsn) as service, open_dbos(dbos_dsn, service) as run_durably:
        for number in range(rounds + 1):
            with dbos.measure(dbos.runs):
                await run_durably()
            if number == 0:
                dbos.clear()
    return [
        Measured(name="a step: bare ADK in memory", seconds=_per_step(memory.runs)),
        Measured(name="a step: bare ADK on Postgres", seconds=_per_step(bare.runs)),
        Measured(name="a step: bare ADK on Postgres with the DBOS plugin", seconds=_per_step(dbos.runs)),
        Measured(name="a step: ours, fenced and journaled", seconds=_per_step(ours.runs)),
        Measured(name="of it an event: bare ADK on Postgres", seconds=bare.writes["append_event"]),
        Measured(name="of it an event: ours", seconds=ours.writes["append_event"]),
        Measured(name="of it a reply journaled", seconds=ours.writes["store_reply"]),
        Measured(name="of it a call begun", seconds=ours.writes["begin_call"]),
        Measured(name="of it a call done", seconds=ours.writes["end_call"]),
    ]


def _per_step(runs: list[float]) -> list[float]:
    return [seconds / STEPS for seconds in runs]
