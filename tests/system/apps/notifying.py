"""An agent with a tool that nobody declared: it notes the id of its call, and its first attempt dies of it."""

import os
from pathlib import Path

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.tools.tool_context import ToolContext

from system.apps.scripted import Script


def notify(tool_context: ToolContext) -> dict[str, bool]:
    """Leave a mark."""
    with Path(os.environ["MARKS"]).open("a") as marks:
        marks.write(f"{tool_context.function_call_id}\n")
    if os.environ["TRIAGE_EPOCH"] == "1":
        os._exit(1)
    return {"notified": True}


app = App(name="own", root_agent=LlmAgent(name="own", model=Script(), tools=[notify]))
