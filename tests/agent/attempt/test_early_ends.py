"""An attempt that is told to end before it has begun."""

import asyncio
import sys

_PROGRAM = """
import os, signal, sys, types
stub = types.ModuleType("triage_agent.attempt.process")
stub.run_attempt = lambda environment, tail: os.kill(os.getpid(), signal.SIGTERM)
stub.leave = sys.exit
sys.modules[stub.__name__] = stub
from triage_agent.cli import main
main(["attempt"])
"""


async def test_an_attempt_that_still_imports_what_it_needs_ends_at_sigterm() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _PROGRAM)
    # As its own answer: from a default action, which the first process of a container has not, it would be -15.
    assert await process.wait() == 143
