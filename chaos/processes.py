"""Agent processes of a trial: forked after the imports, or cold ones that begin with them."""

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final

from chaos.faults import Fault
from chaos.ledger import VARIABLE, Ledger
from triage_contract.database.fence import OpenedAttempt
from triage_contract.database.rows import RunRow
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import AttemptEnv

PATIENCE_SECONDS: Final = 60.0
"""How long a process may take for all that an attempt does here."""

_LOOK_SECONDS: Final = 0.001

_CONTEXT: Final = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["chaos.warming"])


@dataclass(slots=True, kw_only=True)
class Working:
    """A process at work on an attempt. ``bell`` rings when a fault came that it outlives."""

    process: ForkServerProcess
    bell: socket.socket = field(repr=False)

    async def rang(self) -> bool:
        """Wait for the bell, or for the process's end; gives whether the bell rang."""
        return await asyncio.to_thread(lambda: bool(self.bell.recv(16)))

    async def ended(self) -> int:
        """Wait for its end, and give its exit code, negative for a signal."""
        await asyncio.to_thread(self.process.join, PATIENCE_SECONDS)
        self.bell.close()
        if self.process.exitcode is None:
            self.kill()
            await asyncio.to_thread(self.process.join)
            raise TimeoutError(f"an attempt took more than {PATIENCE_SECONDS:g} s")
        return self.process.exitcode

    def wake(self) -> None:
        """Let a stopped process go on."""
        assert self.process.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it."""
        self.process.kill()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where the processes of a trial work: app, database, and ledger."""

    app: str
    url: DatabaseUrl
    ledger: Path

    def start(
        self, run: RunRow, attempt: OpenedAttempt, *, fault: Fault | None, skew_seconds: float = 0.0
    ) -> Working:
        """Start a forked process on an attempt."""
        ours, theirs = socket.socketpair()
        process = _CONTEXT.Process(
            target=_work,
            args=(self._environment(run, attempt), fault, theirs, self.url, skew_seconds),
            daemon=True,
        )
        process.start()
        theirs.close()
        return Working(process=process, bell=ours)

    async def run_cold(self, run: RunRow, attempt: OpenedAttempt, *, kill_at: int | None) -> None:
        """Run a process on an attempt as a pod does, imports and all.

        ``kill_at``: it is killed, from outside, once the ledger has so many entries; None: it is not.
        """
        command = [str(Path(sys.executable).with_name("triage")), "attempt"]
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **self._environment(run, attempt)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        ended = asyncio.create_task(process.wait())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while kill_at is not None and not ended.done() and len(Ledger(self.ledger)) < kill_at:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)  # a file tells of no event
            if kill_at is not None and not ended.done():
                process.kill()
            await ended

    def counts(self, epoch: int) -> Mapping[str, int]:
        """Give how often an attempt came to each step; empty: it did not end by itself."""
        path = self._counts(epoch)
        counts: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
        return counts

    def _counts(self, epoch: int) -> Path:
        return self.ledger.with_suffix(f".{epoch}.json")

    def _environment(self, run: RunRow, attempt: OpenedAttempt) -> dict[str, str]:
        return {
            AttemptEnv.RUN_ID: str(run.id),
            AttemptEnv.EPOCH: str(attempt.epoch),
            AttemptEnv.TOKEN: attempt.token,
            AttemptEnv.DATABASE_URL: self.url.dsn,
            AttemptEnv.APP: self.app,
            AttemptEnv.TERMINATION_LOG: os.devnull,
            AttemptEnv.HEARTBEAT_SECONDS: "0.2",
            AttemptEnv.GRACE_SECONDS: "10",
            VARIABLE: str(self.ledger),
            "CHAOS_COUNTS": str(self._counts(attempt.epoch)),
        }


def _work(
    environment: Mapping[str, str],
    fault: Fault | None,
    bell: socket.socket,
    url: DatabaseUrl,
    skew_seconds: float,
) -> None:
    from chaos.faults import Harness
    from triage_agent.attempt.process import run_attempt
    from triage_agent.replay import clock

    os.environ.update(environment)
    right = time.time

    def wrong() -> float:
        return right() + skew_seconds

    time.time = wrong
    defaults: dict[str, Any] | None = clock.monotonic_times.__kwdefaults__
    assert defaults is not None
    defaults["wall"] = wrong
    harness = Harness(fault=fault, bell=bell, url=url)
    harness.install()
    code = run_attempt(os.environ)
    Path(os.environ["CHAOS_COUNTS"]).write_text(json.dumps(harness.counts))
    raise SystemExit(code)
