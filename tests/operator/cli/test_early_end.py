"""An operator that is told to end while it still imports what it needs."""

import asyncio
import sys

_PROGRAM = """
import os, signal, sys, types
stub = types.ModuleType("triage_operator.cli")
stub.main = lambda: os.kill(os.getpid(), signal.SIGTERM)
sys.modules[stub.__name__] = stub
from triage_operator.__main__ import main
main()
"""


async def test_an_operator_that_is_not_up_yet_ends_at_sigterm() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _PROGRAM)
    # As its own answer: from a default action, which the first process of a container has not, it would be -15.
    assert await process.wait() == 143
