"""A lone API server for as long as a command runs, or standard input is open."""

import asyncio
import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from triage_local.lone.server import LoneApiServer


async def lend(command: Sequence[str], *, controllers: bool) -> int:
    """Run a command beside a server, or wait for the end of standard input; give an exit status.

    The command finds the server by KUBECONFIG. Tests are told by TRIAGE_TEST_KUBECONFIG that it is meant for them,
    and by TRIAGE_TEST_CONTROLLERS that it has controllers.
    """
    async with LoneApiServer(controllers=controllers) as server:
        with tempfile.TemporaryDirectory(prefix="lone-apiserver-") as folder:
            kubeconfig = Path(folder) / "kubeconfig"
            server.write_kubeconfig(kubeconfig)
            if not command:
                click.echo(kubeconfig)
                await _end_of_input()
                return 0
            found = {"KUBECONFIG": str(kubeconfig), "TRIAGE_TEST_KUBECONFIG": str(kubeconfig)}
            if controllers:
                found["TRIAGE_TEST_CONTROLLERS"] = "yes"
            process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **found})
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
        sys.stdin.buffer.read()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(ended.set)

    # A thread that nothing waits for at the end, since what it reads may never end.
    threading.Thread(target=read, daemon=True).start()
    await ended.wait()
