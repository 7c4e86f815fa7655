"""The owner's end: says what the guard process ends and removes when the owner is gone."""

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

_SCRIPT = Path(__file__).with_name("process.py")


class Guard:
    """A small process that reads from us until our end, however it comes, and then cleans up after us.

    A parent-death signal (``PR_SET_PDEATHSIG``) would not do: it is sent when the *thread* ends that made the
    child, it is lost when the child changes its user, and Linux alone has it.
    """

    def __init__(self) -> None:
        # -S and -I keep the start to about 10 ms. A session of its own keeps Ctrl-C away.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch_group(self, group: int, *, ending: signal.Signals = signal.SIGKILL) -> None:
        """End a process group by ``ending``, and a second later by SIGKILL, when this process is gone."""
        self._say(f"group {group} {ending.value}")

    def forget_group(self, group: int) -> None:
        """Leave a process group alone from now on: it has ended."""
        self._say(f"forget {group}")

    def watch_folder(self, folder: Path) -> None:
        """Remove a folder when this process is gone, after the groups have ended."""
        self._say(f"folder {folder.resolve()}")

    def close(self) -> None:
        """Let the guard do its work now, and wait until it has."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
