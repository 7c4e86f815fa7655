"""Telling a person what happens, one line for each thing."""

import time

from rich.console import Console
from rich.text import Text


class Story:
    """Lines with the seconds since the beginning."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    def observed(self, run: str, what: str) -> None:
        """Tell what was seen of a run."""
        self._tell(run, what, "")

    def done(self, run: str, what: str) -> None:
        """Tell what the demo itself does to a run."""
        self._tell(run, what, "bold yellow")

    def _tell(self, run: str, what: str, style: str) -> None:
        elapsed = time.monotonic() - self._began
        line = Text.assemble((f"{elapsed:6.1f} s  ", "dim"), (f"{run:20}", "cyan"), (what, style))
        self._console.print(line, soft_wrap=True)
