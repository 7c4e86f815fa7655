"""A lone API server for as long as a command runs, or standard input is open."""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Sequence

import click

from triage_local.exceptions import ProgramError
from triage_local.lone.server import LoneApiServer


async def lend(command: Sequence[str], *, controllers: bool) -> int:
    """Run a command beside a server, or wait for the end of standard input; give an exit status.

    The command finds the server by KUBECONFIG. Tests are told by TRIAGE_TEST_KUBECONFIG that it is meant for them,
    and by TRIAGE_TEST_CONTROLLERS that it has controllers.

    Raises:
        ProgramError: It cannot be run.
    """
    async with LoneApiServer(controllers=controllers) as server:
        kubeconfig = str(server.kubeconfig)
        if not command:
            click.echo(kubeconfig)
            await _end_of_input()
            return 0
        found = {"KUBECONFIG": kubeconfig, "TRIAGE_TEST_KUBECONFIG": kubeconfig}
        if controllers:
            found["TRIAGE_TEST_CONTROLLERS"] = "yes"
        try:
            process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **found})
        except OSError as error:
            raise ProgramError(f"{command[0]} cannot be run: {error.strerror}") from error
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            # Ctrl-C has reached it as well, SIGTERM has not.
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        return code if code >= 0 else 128 - code


async def _end_of_input() -> None:
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def read() -> None:
        # Not through sys.stdin, whose lock the interpreter wants at its end.
        while os.read(sys.stdin.fileno(), 65536):
            pass
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    # A thread that nothing waits for at the end, since what it reads may never end.
    threading.Thread(target=read, daemon=True).start()
    await ended.wait()
