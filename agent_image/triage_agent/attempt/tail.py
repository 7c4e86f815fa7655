"""The last lines of a process, kept for whoever asks once its pod is gone."""

import sys
import threading
from collections import deque
from typing import Any, Final, TextIO, cast

from triage_agent.redacting import without_secrets
from triage_contract.texts import storable_text

LINES: Final = 200
"""How many lines are kept."""

LINE_LENGTH: Final = 500
"""Characters to which a line is cut: tools print whole documents."""


class Tail:
    """The last lines that were written to standard output and error, in the order of their writing.

    Any thread may write while another one reads.
    """

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES)
        self._open = ""
        self._lock = threading.Lock()
        self._written = 0
        self._told = 0

    def capture(self) -> None:
        """Keep, from now on, what this process writes; it is written as before."""
        sys.stdout = cast(TextIO, _Tee(sys.stdout, self))
        sys.stderr = cast(TextIO, _Tee(sys.stderr, self))

    def write(self, text: str) -> None:
        """Take in a piece of what is written; it may begin and end in the middle of a line."""
        with self._lock:
            *lines, self._open = (self._open + text).split("\n")
            self._open = self._open[:LINE_LENGTH]
            self._lines.extend(line[:LINE_LENGTH] for line in lines)
            self._written += 1

    def news(self) -> str | None:
        """Give all kept lines, without secrets, where something came since this was last asked; else None."""
        with self._lock:
            if self._written == self._told:
                return None
            self._told = self._written
            text = "\n".join((*self._lines, self._open)) if self._open else "\n".join(self._lines)
        return storable_text(without_secrets(text))


class _Tee:
    """A stream that passes on what is written to it, and lets a tail have it."""

    def __init__(self, stream: TextIO, tail: Tail) -> None:
        self._stream = stream
        self._tail = tail

    def write(self, text: str) -> int:
        written = self._stream.write(text)
        self._tail.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
