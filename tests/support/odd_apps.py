"""Apps that an attempt may be told to run, each with something about it: ``support.odd_apps:NAME``."""

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Self

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.tools.tool_context import ToolContext

from support.stage import ScriptedLlm, by_turn, call, say

RELEASE = "TEST_RELEASE"
"""Variable with the path of a file that lets a tool go on once it is there; `.ids` beside it lists the calls."""

NO_APP = object()


def _note(context: ToolContext) -> Path:
    path = Path(os.environ[RELEASE])
    with path.with_suffix(".ids").open("a") as ids:
        ids.write(f"{context.function_call_id}\n")
    return path


def block(tool_context: ToolContext) -> str:
    """Keep the event loop from doing anything else."""
    path = _note(tool_context)
    while not path.exists():
        time.sleep(0.01)
    return "done"


async def wait(tool_context: ToolContext) -> str:
    """Take a while, and let the event loop work."""
    path = _note(tool_context)
    while not path.exists():
        await asyncio.sleep(0.01)
    return "done"


async def leave_thread(tool_context: ToolContext) -> str:
    """Lose patience with a thread that works on."""
    path = _note(tool_context)

    def work() -> None:
        while not path.exists():
            time.sleep(0.01)
        path.with_suffix(".done").touch()

    threading.Thread(target=work).start()
    await asyncio.wait_for(asyncio.to_thread(work), timeout=0.01)
    return "done"


def _app_of(*tools: object) -> App:
    names = [getattr(tool, "__name__", "") for tool in tools]
    model = ScriptedLlm(script=by_turn([call(name) for name in names], say("Done.")))
    return App(name="odd", root_agent=LlmAgent(name="odd", model=model, tools=list(tools)))


blocking = _app_of(block)
waiting = _app_of(wait)
leaving = _app_of(leave_thread)
unsafe = App(name="odd", root_agent=BaseAgent(name="custom"))


class BreakingApp(App):
    """One with which something happens that nobody thought of."""

    def model_copy(self, **_: object) -> Self:
        """Break."""
        raise ZeroDivisionError("postgresql://me:hidden@host/db")


breaking = BreakingApp(name="odd", root_agent=LlmAgent(name="odd"))
