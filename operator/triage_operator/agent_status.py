"""The status of an agent. Pure, and equal for equal input."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from triage_contract.api import AgentCondition, AgentStatus, TriageAgent
from triage_operator.conditions import build_condition
from triage_operator.manifests import template_fault
from triage_operator.reasons import Reason

_TOOLS_NAMED: Final = 20
"""Tools that a message names; an agent with more of them gets their number too."""


def build_agent_status(
    agent: TriageAgent, *, running: int, undeclared: Collection[str] | None, now: datetime
) -> AgentStatus:
    """Build the status to write.

    Args:
        running: its runs that have an open attempt.
        undeclared: its tools that were called and are neither ReadOnly nor Idempotent. None: none was called.
    """
    fault = template_fault(agent)
    reason, message = (
        (Reason.READY, "Attempts can be started.") if fault is None else (Reason.BAD_AGENT, fault)
    )
    conditions = [
        build_condition(
            agent, AgentCondition.READY, holds=fault is None, reason=reason, message=message, now=now
        )
    ]
    if undeclared is not None:
        reason, message = _of_tools(undeclared)
        declared = AgentCondition.TOOLS_DECLARED
        conditions.append(
            build_condition(agent, declared, holds=not undeclared, reason=reason, message=message, now=now)
        )
    return AgentStatus(
        conditions=tuple(conditions),
        observed_generation=agent.metadata.generation,
        image=agent.spec.image,
        running=running,
    )


def _of_tools(undeclared: Collection[str]) -> tuple[Reason, str]:
    if not undeclared:
        return Reason.TOOLS_DECLARED, "Each tool that was called is ReadOnly or Idempotent."
    names = sorted(undeclared)
    more = f" and {len(names) - _TOOLS_NAMED} more" if len(names) > _TOOLS_NAMED else ""
    return Reason.TOOLS_UNDECLARED, (
        f"Neither ReadOnly nor Idempotent, and run again after a loss: {', '.join(names[:_TOOLS_NAMED])}{more}."
    )
