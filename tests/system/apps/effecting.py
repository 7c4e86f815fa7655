"""An agent with one tool that has an effect, and an outside world that can be asked for it: files in ``FOLDER``.

``KIND`` is what the tool declares itself to be; empty: nothing. Where ``EFFECT`` is ``first``, the effect comes before
the tool stands still, else after it. It goes on once there is a file ``go``.
"""

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App

from system.apps.scripted import Script

FOLDER = Path(os.environ["FOLDER"])
EPOCH = os.environ["TRIAGE_EPOCH"]


def _note(file: str) -> None:
    with (FOLDER / file).open("a") as lines:
        lines.write(f"{EPOCH}\n")


async def act() -> dict[str, str]:
    """Have an effect."""
    if os.environ["EFFECT"] == "first":
        _note("effects")
    _note("inside")
    while not (FOLDER / "go").exists():
        await asyncio.sleep(0.02)
    if os.environ["EFFECT"] != "first":
        _note("effects")
    return {"acted_in": EPOCH}


def look(args: Mapping[str, Any], key: str, begun_at: datetime) -> dict[str, str] | Literal[False] | None:
    """Say what became of a call."""
    _note("asked")
    if (FOLDER / "forgetful").exists():
        return None
    effects = FOLDER / "effects"
    return {"acted_in": effects.read_text().split()[0]} if effects.exists() else False


if kind := os.environ["KIND"]:
    act.triage_kind = kind  # type: ignore[attr-defined]
    act.triage_reconcile = look  # type: ignore[attr-defined]

app = App(name="own", root_agent=LlmAgent(name="own", model=Script(), tools=[act]))
