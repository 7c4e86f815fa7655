"""Tools of each kind, which note in the ledger what they do."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from google.adk.tools.tool_context import ToolContext

from chaos.ledger import Ledger
from triage_agent.kinds import idempotent, read_only, reconciled_by


@read_only
def read(page: str) -> dict[str, str]:
    """Read a page."""
    return {"text": f"{page} says nothing."}


@idempotent
def file(title: str, tool_context: ToolContext) -> dict[str, str]:
    """File an issue, once for each key."""
    Ledger.of_process().perform(f"file {title}", key=_key(tool_context), keyed=True)
    return {"filed": title}


def pay(whom: str, tool_context: ToolContext) -> dict[str, str]:
    """Pay somebody, as often as it is called: nobody declared what repeating it does."""
    Ledger.of_process().perform(f"pay {whom}", key=_key(tool_context), keyed=False)
    return {"paid": whom}


def _was_posted(args: Mapping[str, Any], key: str, begun_at: datetime) -> dict[str, str] | Literal[False]:
    posted = Ledger.of_process().has_effect(f"post {args['text']}")
    return {"posted": args["text"]} if posted else False


@reconciled_by(_was_posted)
async def post(text: str, tool_context: ToolContext) -> dict[str, str]:
    """Post a text, as often as it is called; it can be found again."""
    Ledger.of_process().perform(f"post {text}", key=_key(tool_context), keyed=False)
    return {"posted": text}


@read_only
async def index() -> dict[str, str]:
    """Take longer than anything else here."""
    await asyncio.sleep(2)
    return {"text": "Everything."}


@idempotent
def ask(whom: str) -> dict[str, str]:
    """Ask somebody, who answers later."""
    return {"status": "pending"}


@idempotent
def ask_silently(whom: str) -> None:
    """Ask somebody, and return nothing."""


@idempotent
def leave(tool_context: ToolContext) -> str:
    """End the loop."""
    tool_context.actions.escalate = True
    return "left"


def _key(context: ToolContext) -> str:
    assert context.function_call_id is not None
    return context.function_call_id


TOOLS: Final[tuple[Any, ...]] = (read, file, pay, post)
