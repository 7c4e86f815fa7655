"""The status of an agent. Pure, and equal for equal input."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

from triage_contract.api import AgentCondition, AgentStatus, TriageAgent
from triage_contract.states import InDoubt, ToolKind
from triage_operator.conditions import build_condition
from triage_operator.manifests import template_fault
from triage_operator.reasons import Reason

_TOOLS_NAMED: Final = 20
"""Tools that a message names; an agent with more of them gets their number too."""

_IN_DOUBT: Final = {
    InDoubt.PARK: "A call that began and whose end is not known waits for a decision",
    InDoubt.RETRY: "A call that began and whose end is not known runs again, and its effect may happen twice",
    InDoubt.FAIL: "A call that began and whose end is not known makes its run fail",
}


def build_agent_status(
    agent: TriageAgent, *, running: int, undeclared: Collection[str] | None, now: datetime
) -> AgentStatus:
    """Build the status to write.

    Args:
        running: its runs that have an open attempt.
        undeclared: its tools of no declared kind, as its runs told them. None: none did so far.
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
        undeclared = _still_undeclared(agent, undeclared)
        reason, message = _of_tools(undeclared, agent.spec.resume.in_doubt)
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


def _still_undeclared(agent: TriageAgent, undeclared: Collection[str]) -> Collection[str]:
    """Leave out what was declared in the agent since it was told."""
    kinds = agent.spec.tools
    return [name for name in undeclared if kinds.get(name, ToolKind.UNDECLARED) is ToolKind.UNDECLARED]


def _of_tools(undeclared: Collection[str], in_doubt: InDoubt) -> tuple[Reason, str]:
    if not undeclared:
        return Reason.TOOLS_DECLARED, "Each known tool has a declared kind."
    names = sorted(undeclared)
    more = f" and {len(names) - _TOOLS_NAMED} more" if len(names) > _TOOLS_NAMED else ""
    return Reason.TOOLS_UNDECLARED, (
        f"Of no declared kind: {', '.join(names[:_TOOLS_NAMED])}{more}. {_IN_DOUBT[in_doubt]} (resume.inDoubt:"
        f" {in_doubt})."
    )
