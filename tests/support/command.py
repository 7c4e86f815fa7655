"""The command `triage`, as a process of its own."""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from support.killing import CONTEXT

_TESTS = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended. ``code`` is negative for a signal."""

    code: int
    out: str
    err: str

    @property
    def ids(self) -> tuple[str, str]:
        """Session and invocation, as `triage start` prints them first."""
        first, second, *_ = self.out.splitlines()
        return first.removeprefix("session "), second.removeprefix("invocation ")


def triage(*arguments: str, environment: Mapping[str, str], given: bytes = b"") -> Ended:
    """Run the installed command with this environment and nothing of ours; ``given`` is its standard input."""
    ended = subprocess.run(
        [Path(sys.executable).with_name("triage"), *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_TESTS), **environment},
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Ended(code=ended.returncode, out=ended.stdout.decode(), err=ended.stderr.decode())


class Command:
    """The same command in a process that need not import everything anew; ``folder`` is where it works."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._output = Path(tempfile.mkdtemp(dir=folder, prefix=".output-"))
        work = (list(arguments), dict(environment), str(folder), str(self._output))
        self.process: ForkServerProcess = CONTEXT.Process(target=_work, args=work, daemon=True)
        self.process.start()

    async def ended(self) -> Ended:
        """Wait for its end."""
        await asyncio.to_thread(self.process.join)
        assert self.process.exitcode is not None
        return Ended(
            code=self.process.exitcode,
            out=(self._output / "out").read_text(),
            err=(self._output / "err").read_text(),
        )


def _work(arguments: list[str], environment: dict[str, str], folder: str, output: str) -> None:
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{output}/{name}", os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.update(environment)
    from triage_agent.cli import main

    main(arguments)
