"""A container: one real process with a session of its own, and what it leaves behind."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import psutil

from triage_local.guard import Guard
from triage_local.kubelet.exceptions import StartError

TERMINATION_LOG_VARIABLE: Final = "TRIAGE_TERMINATION_LOG"

# Of the kubelet: MaxContainerTerminationMessageLength and the bounds of the fallback to logs.
_MESSAGE_BYTES = 4096
_FALLBACK_BYTES = 2048
_FALLBACK_LINES = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is needed to start a container."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    working_folder: Path
    log: Path
    """Standard output and error, together."""
    termination_log: Path
    fall_back_to_log: bool
    """Where the process fails without a message, the end of its log is the message."""


class Container:
    """A process that has been started."""

    def __init__(self, launch: Launch, process: asyncio.subprocess.Process, guard: Guard) -> None:
        self._launch = launch
        self._process = process
        self._guard = guard
        self._tree: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            self._tree.append(psutil.Process(process.pid))
        self.started = datetime.now(UTC)
        self.finished: datetime | None = None
        self.out_of_memory = False

    @classmethod
    async def start(cls, launch: Launch, guard: Guard) -> "Container":
        """Start the process; ``guard`` ends it should we die.

        Raises:
            StartError: There is no such program, or it cannot be executed.
        """
        launch.termination_log.touch()
        with launch.log.open("ab") as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    *launch.command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=asyncio.subprocess.STDOUT,
                    env=launch.environment,
                    cwd=launch.working_folder,
                    start_new_session=True,
                )
            except OSError as error:
                raise StartError(f'exec: "{error.filename}": {error.strerror}') from error
        guard.watch_group(process.pid)
        return cls(launch, process, guard)

    @property
    def pid(self) -> int:
        """Process id of the main process, also that of its session and group."""
        return self._process.pid

    @property
    def id(self) -> str:
        """Unique id, as a runtime would give one."""
        return f"process://{self.pid}-{self.started.timestamp():.6f}"

    @property
    def log(self) -> Path:
        """File of what it has said."""
        return self._launch.log

    @property
    def alive(self) -> bool:
        """Whether the main process has not ended."""
        return self._process.returncode is None

    @property
    def exit_code(self) -> int:
        """Exit code of the main process once it has ended: 128 and the signal's number where one ended it."""
        code = self._process.returncode
        assert code is not None
        return code if code >= 0 else 128 - code

    @property
    def reason(self) -> str:
        """Reason of the end, as the kubelet gives it."""
        if self.out_of_memory:
            return "OOMKilled"
        return "Error" if self.exit_code else "Completed"

    async def wait(self) -> None:
        """Wait for the main process to end. What is left of its session ends with it, as in a container."""
        await self._process.wait()
        self.finished = datetime.now(UTC)
        self.signal_tree(signal.SIGKILL)
        self._guard.forget_group(self.pid)

    async def reap(self) -> None:
        """Wait for the main process only, which has been killed."""
        await self._process.wait()

    def signal_main(self, number: signal.Signals) -> None:
        """Send a signal to the main process alone, as a kubelet does to ask for an end."""
        if self.alive:
            self._process.send_signal(number)

    def signal_tree(self, number: signal.Signals) -> None:
        """Send a signal to the main process, its session, and every descendant that left the session."""
        if self.alive:
            self.look_at_tree()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        for process in self._tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)  # psutil makes sure that it is still the same process

    def look_at_tree(self) -> None:
        """See which processes belong to the container now."""
        with contextlib.suppress(psutil.NoSuchProcess):
            main = psutil.Process(self.pid)
            self._tree = [main, *main.children(recursive=True)]

    def resident_bytes(self) -> int:
        """Resident memory of the processes last seen, in bytes. What two of them share counts twice."""
        used = 0
        for process in self._tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                used += process.memory_info().rss
        return used

    def termination_message(self) -> str:
        """What the process left to say about its end."""
        message = self._launch.termination_log.read_bytes()[:_MESSAGE_BYTES]
        if not message and self.exit_code and self._launch.fall_back_to_log:
            with self.log.open("rb") as log:
                log.seek(max(0, self.log.stat().st_size - _FALLBACK_BYTES))
                message = b"".join(log.readlines()[-_FALLBACK_LINES:])
        return message.decode(errors="replace")
