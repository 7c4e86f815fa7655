"""Agent processes that die, or stop, exactly where a test wants them to.

Processes are forked from a server that has imported everything, since importing ADK anew takes seconds. What they
run is the real thing, ``run_attempt``; only the step that is to be the last one is wrapped.
"""

import asyncio
import multiprocessing
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from typing import Any, Literal

from support.databases import Database
from triage_contract.database.fence import OpenedAttempt
from triage_contract.database.rows import RunRow
from triage_contract.names import AttemptEnv, DocsEnv

Step = Literal["claim", "append_event", "begin_call", "end_call", "store_reply", "effect"]

CONTEXT = multiprocessing.get_context("forkserver")
# Everything that an agent process imports sooner or later. The server does not have the path of the tests.
CONTEXT.set_forkserver_preload(
    [
        "google.adk.flows.llm_flows.auto_flow",
        "google.adk.models.google_llm",
        "google.adk.runners",
        "triage_agent.attempt.process",
        "triage_agent.attempt.working",
        "triage_agent.docs_triage.agent",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """A place in a run: before or after the nth (from 1) execution of a step. ``number`` is the signal to die of."""

    when: Literal["before", "after"]
    step: Step
    nth: int
    number: signal.Signals = signal.SIGKILL

    def __str__(self) -> str:
        return f"{self.when}-{self.step}-{self.nth}"


@dataclass(slots=True)
class _Wrapped:
    at: At
    count: int = 0

    def around(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.at.when == "before" and self.count == self.at.nth:
                os.kill(os.getpid(), self.at.number)
            result = await function(*args, **kwargs)
            if self.at.when == "after" and self.count == self.at.nth:
                os.kill(os.getpid(), self.at.number)
            return result

        return wrapper


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """How agent processes of a test are started."""

    database: Database
    model_url: str
    environment: Mapping[str, str] = field(default_factory=dict)
    clock_offset_seconds: float = 0.0

    def start(self, run: RunRow, attempt: OpenedAttempt, at: At | None = None) -> ForkServerProcess:
        """Start a process on an attempt; it dies at ``at``, if it ever comes there."""
        environment = self.environment_of(run, attempt)
        process = CONTEXT.Process(
            target=_work, args=(environment, at, self.clock_offset_seconds), daemon=True
        )
        process.start()
        return process

    def environment_of(self, run: RunRow, attempt: OpenedAttempt) -> dict[str, str]:
        """Give what the environment of a process tells of an attempt."""
        return {
            AttemptEnv.RUN_ID: str(run.id),
            AttemptEnv.EPOCH: str(attempt.epoch),
            AttemptEnv.TOKEN: attempt.token,
            AttemptEnv.DATABASE_URL: self.database.url.dsn,
            AttemptEnv.APP: "triage_agent.docs_triage.agent:app",
            AttemptEnv.TERMINATION_LOG: os.devnull,
            AttemptEnv.HEARTBEAT_SECONDS: "0.2",
            DocsEnv.MODEL_BASE_URL: self.model_url,
            DocsEnv.MODEL_API_KEY: "no-key",
            **self.environment,
        }

    async def work(self, run: RunRow, attempt: OpenedAttempt, at: At | None = None) -> int:
        """Run a process on an attempt to its end, and give its exit code, negative for a signal."""
        return await ended(self.start(run, attempt, at))


async def ended(process: ForkServerProcess) -> int:
    """Wait for a process's end."""
    await asyncio.to_thread(process.join)
    assert process.exitcode is not None
    return process.exitcode


async def assert_done_once(database: Database, run: RunRow) -> None:
    """One issue, one answer, one end marker."""
    assert await database.values("SELECT count(*) FROM triage.issues") == [(1,)]
    answers = await database.values(
        "SELECT count(*) FILTER (WHERE event_data #>> '{content,parts,0,text}' LIKE 'Filed as issue%'),"
        " count(*) FILTER (WHERE event_data #> '{actions,end_of_agent}' = 'true') FROM events"
        " WHERE invocation_id = :id AND event_data ->> 'author' <> 'user'",
        id=run.invocation_id,
    )
    assert answers[0][0] == 1
    assert answers[0][1] in (0, 1)  # killed before its marker a run is finished all the same


async def stopped(pid: int) -> None:
    """Wait until a process has been stopped by a signal. It is the fork server's child: only /proc tells."""
    async with asyncio.timeout(30):
        while True:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "T":
                    return
            await asyncio.sleep(0.01)


def _work(environment: Mapping[str, str], at: At | None, clock_offset_seconds: float) -> None:
    from triage_agent.attempt.process import leave, run_attempt
    from triage_agent.replay import clock

    os.environ.update(environment)
    right = time.time

    def wrong() -> float:
        return right() + clock_offset_seconds

    time.time = wrong
    defaults = clock.monotonic_times.__kwdefaults__
    assert defaults is not None
    defaults["wall"] = wrong
    if at is not None:
        _wrap(at)
    leave(run_attempt(os.environ))


def _wrap(at: At) -> None:
    from triage_agent.attempt.record import AttemptRecord
    from triage_agent.attempt.sessions import AttemptSessionService
    from triage_agent.trackers.postgres import PostgresTracker

    owner, name = {
        "claim": (AttemptRecord, "claim"),
        "append_event": (AttemptSessionService, "append_event"),
        "begin_call": (AttemptRecord, "begin_call"),
        "end_call": (AttemptRecord, "end_call"),
        "store_reply": (AttemptRecord, "store_reply"),
        "effect": (PostgresTracker, "file"),
    }[at.step]
    setattr(owner, name, _Wrapped(at).around(getattr(owner, name)))
