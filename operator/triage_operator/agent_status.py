"""The status of an agent. Pure, and equal for equal input."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from triage_contract.api import AgentCondition, AgentStatus, Condition, ConditionStatus, TriageAgent
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
    ready = (Reason.READY, "Attempts can be started.") if fault is None else (Reason.BAD_AGENT, fault)
    conditions = [_condition(agent, AgentCondition.READY, fault is None, *ready, now)]
    if undeclared is not None:
        said = _of_tools(undeclared)
        conditions.append(_condition(agent, AgentCondition.TOOLS_DECLARED, not undeclared, *said, now))
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


def _condition(
    agent: TriageAgent, kind: AgentCondition, holds: bool, reason: Reason, message: str, now: datetime
) -> Condition:
    status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
    standing = (
        condition.last_transition_time
        for condition in agent.status.conditions
        if (condition.type, condition.status) == (kind, status)
    )
    return Condition(
        type=kind.value,
        status=status,
        reason=reason.value,
        message=message,
        last_transition_time=next(standing, now.replace(microsecond=0)),
        observed_generation=agent.metadata.generation,
    )
