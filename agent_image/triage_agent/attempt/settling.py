"""Settling calls in doubt before the agent goes on: their outside world is asked, and what it says is journaled."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.workflow import BaseNode

from triage_agent.attempt.record import AttemptRecord
from triage_agent.exceptions import ConfigurationError
from triage_agent.kinds import Outside, Reconcile, declared_key, outside_key, reconcile_of
from triage_agent.redacting import redacted
from triage_agent.replay.journal import BegunRow
from triage_agent.replay.sanitising import storable
from triage_agent.trees import tools_of, walk_all
from triage_contract.names import EFFECT_KEY_PREFIX
from triage_contract.states import Settled
from triage_contract.verdict import DoubtfulCall, Remedy

logger = logging.getLogger(__name__)

_SAID: Final = {
    Settled.HAPPENED: "its outside world has the result",
    Settled.NOT_HAPPENED: "its outside world has not seen it",
    Settled.UNKNOWN: "its outside world cannot tell",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the outside world says of a call. ``result`` is set where it happened."""

    settled: Settled
    message: str
    result: Mapping[str, Any] | None = None


async def settle(
    root: BaseNode, session_id: str, doubts: Iterable[DoubtfulCall], record: AttemptRecord
) -> str:
    """Ask about each call whose remedy is to ask, and journal the answer; gives a sentence on each, for people.

    Raises:
        ConfigurationError: the agent has no such tool any more, or none that can be asked about.
        DatabaseError: the attempt may not write any more, or the database does not answer.
    """
    sentences = []
    for doubt in doubts:
        if doubt.remedy is not Remedy.ASK:
            continue
        tool = await _find_tool(root, doubt.name)
        reconcile = None if tool is None else reconcile_of(tool)
        if tool is None or reconcile is None:
            raise ConfigurationError(
                f"tool {doubt.name!r} has a call in doubt, but the agent has nothing to ask about it any more"
            )
        row = await record.begun_call(doubt.key)
        answer = await _ask(reconcile, row, _outside_key(tool, session_id, doubt, row))
        await record.settle_call(
            doubt.key,
            answer.settled,
            result=answer.result,
            message=answer.message,
            asked_at=row.asked_at,
        )
        facts = {"action": "settle", "tool": doubt.name, "call": doubt.id, "settled": answer.settled}
        logger.info("settled", extra={**facts, "why": answer.message})
        sentences.append(f"{doubt.name} ({doubt.id}): {answer.message}.")
    return " ".join(sentences)


async def _ask(reconcile: Reconcile, row: BegunRow, key: str) -> Answer:
    try:
        if inspect.iscoroutinefunction(reconcile):
            outside: Outside = await reconcile(row.args, key, row.begun_at)
        else:
            given = await asyncio.to_thread(_call, reconcile, row, key)
            outside = await given if inspect.isawaitable(given) else given
        result = storable(dict(outside)) if isinstance(outside, Mapping) else None
    # Code of the user's own: whatever it raises, it has not told.
    except Exception as error:  # noqa: BLE001
        message = storable(redacted(f"asking its outside world raised {type(error).__name__}: {error}"))
        return Answer(settled=Settled.UNKNOWN, message=message)
    if result is not None:
        return Answer(settled=Settled.HAPPENED, message=_SAID[Settled.HAPPENED], result=result)
    settled = Settled.NOT_HAPPENED if outside is False else Settled.UNKNOWN
    return Answer(settled=settled, message=_SAID[settled])


def _call(reconcile: Reconcile, row: BegunRow, key: str) -> Outside | Awaitable[Outside]:
    try:
        return reconcile(row.args, key, row.begun_at)
    except StopIteration as error:
        # No future takes this one: it would be waited for without an end.
        raise RuntimeError("function raised StopIteration") from error


def _outside_key(tool: BaseTool, session_id: str, doubt: DoubtfulCall, row: BegunRow) -> str:
    declared = declared_key(tool, row.args) if doubt.key.startswith(EFFECT_KEY_PREFIX) else None
    return declared or outside_key(session_id, doubt.id)


async def _find_tool(root: BaseNode, name: str) -> BaseTool | None:
    """Find a tool of a tree, the last in its toolsets, since they may have to ask a server."""
    nodes = list(walk_all(root))
    for node in nodes:
        for tool in tools_of(node):
            if tool.name == name:
                return tool
    toolsets = (it for node in nodes if isinstance(node, LlmAgent) for it in node.tools)
    for toolset in toolsets:
        if isinstance(toolset, BaseToolset):
            for tool in await toolset.get_tools_with_prefix():
                if tool.name == name:
                    return tool
    return None
