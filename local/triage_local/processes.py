"""Programs, run as processes that end when we do."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from triage_local.exceptions import PatienceError, ProgramError
from triage_local.guard import Guard

_LOOK_SECONDS: Final = 0.05
_TAIL_CHARACTERS: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a program ended, and what it said on standard output and error."""

    exit_code: int
    """Negative: the number of the signal that ended it."""
    output: str


class Process:
    """A running program with a session of its own, which Ctrl-C in our terminal does not reach."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path, guard: Guard) -> None:
        self._name = name
        self._process = process
        self._log = log
        self._guard = guard

    @classmethod
    async def start(cls, *command: str, environment: Mapping[str, str], log: Path, guard: Guard) -> Self:
        """Start a program of this Python environment, or else of this machine.

        Args:
            command: Its name, and its arguments.
            environment: All that it gets beside a path, a home and a language: nothing of ours is passed on.
            log: File to which its output is added.
            guard: Ends it should we be killed.

        Raises:
            ProgramError: It is not installed.
        """
        program = find(command[0])
        basics = {"PATH": _search_path(), "HOME": str(log.parent), "LANG": "C.UTF-8"}
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                program,
                *command[1:],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**basics, **environment},
                start_new_session=True,
            )
        guard.watch_group(process.pid)
        return cls(program.name, process, log, guard)

    @property
    def pid(self) -> int:
        """Process id, also that of its session and group."""
        return self._process.pid

    async def until_ready(self, is_ready: Callable[[], Awaitable[bool]], patience_seconds: float) -> None:
        """Ask it again and again until it is ready, since it tells nobody by itself.

        Raises:
            ProgramError: It ended instead. The message has the end of its log.
            PatienceError: It is not ready in time; the same.
        """

        async def ask() -> None:
            while not await is_ready():  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)

        ended, ready = asyncio.create_task(self.wait()), asyncio.create_task(ask())
        try:
            done, _ = await asyncio.wait(
                (ended, ready), timeout=patience_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if ended in done:
                raise ProgramError(f"{self._name} ended with {ended.result()}: {tail(self._log)}")
            if not done:
                raise PatienceError(
                    f"{self._name} is not ready after {patience_seconds:.0f} s: {tail(self._log)}"
                )
            ready.result()
        finally:
            ended.cancel()
            ready.cancel()

    async def wait(self) -> int:
        """Wait for the end, and give the exit code; negative: the number of the signal that ended it."""
        code = await self._process.wait()
        self._guard.forget_group(self.pid)
        return code

    async def kill(self) -> None:
        """End it by SIGKILL, with every process of its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self.wait()

    async def stop(self, patience_seconds: float) -> None:
        """Ask it to end by SIGTERM; one that has not done so in time is killed."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await self._process.wait()
        await self.kill()


def find(program: str) -> Path:
    """Find a program, first beside our Python, then on the PATH.

    Raises:
        ProgramError: It is in neither.
    """
    found = shutil.which(program, path=_search_path())
    if found is None:
        raise ProgramError(f"{program} is neither installed beside {sys.executable} nor on the PATH")
    return Path(found)


def _search_path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"


async def run(*command: str, environment: Mapping[str, str], folder: Path, guard: Guard) -> Finished:
    """Run a program to its end; see ``Process.start``.

    What it says is kept in ``folder`` meanwhile.

    Raises:
        ProgramError: It is not installed.
    """
    with tempfile.TemporaryDirectory(dir=folder) as home:
        log = Path(home, "output")
        process = await Process.start(*command, environment=environment, log=log, guard=guard)
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await process.kill()
            raise
        return Finished(exit_code=code, output=_text(log))


def tail(log: Path) -> str:
    """Give the end of a log."""
    return _text(log)[-_TAIL_CHARACTERS:]


def _text(log: Path) -> str:
    return log.read_text(errors="replace")
