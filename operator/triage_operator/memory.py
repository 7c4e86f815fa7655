"""Memory for attempts: raised where it is near its limit, and after each OOM kill, up to a cap."""

import math
from collections.abc import Sequence
from typing import Final

from triage_contract.api import TriageAgent
from triage_contract.database.rows import AttemptRow
from triage_contract.quantities import parse_memory
from triage_contract.states import Cause

DEFAULT_CAP: Final = 4
"""The cap where the agent sets none, as a multiple of its own limit."""

NEAR_LIMIT: Final = 0.75
"""Share of its memory limit from which a running attempt gets more. Far enough from all of it for a node's second or
two, unless the process takes the rest at once; near enough that one that has settled well below is left alone."""

_NEEDING_MORE: Final = (Cause.OOM, Cause.SHORT_OF_MEMORY)


def agent_limit(agent: TriageAgent) -> int | None:
    """Give the memory limit of the agent's own resources in bytes; None: it has none, and nothing is ever raised."""
    text = agent.spec.resources.limits.get("memory")
    # Kubernetes takes a limit of 0 for none.
    return (parse_memory(text) or None) if text is not None else None


def next_limit(agent: TriageAgent, attempts: Sequence[AttemptRow]) -> int | None:
    """Give the next attempt's memory limit in bytes; None: none.

    It is the agent's own, or more: what earlier attempts had while they used more than leaves room below that, and a
    step beyond what was not enough.
    """
    own = agent_limit(agent)
    if own is None:
        return None
    limits = [own]
    for attempt in attempts:
        had, used = attempt.memory_limit_bytes, attempt.memory_used_bytes
        if had is None:
            continue
        if attempt.cause in _NEEDING_MORE:
            limits.append(_raised(agent, own, had))
        elif used is not None and is_near(used, own):
            limits.append(min(_cap(agent, own), had))
    return max(limits)


def raised_limit(agent: TriageAgent, limit_bytes: int) -> int | None:
    """Give the limit in bytes that follows a limit; None: there is none, or it is the highest."""
    own = agent_limit(agent)
    if own is None:
        return None
    raised = max(own, _raised(agent, own, limit_bytes))
    return raised if raised > limit_bytes else None


def is_at_cap(attempt: AttemptRow, agent: TriageAgent) -> bool:
    """Say whether an OOM kill of this attempt would leave nothing to raise."""
    had = attempt.memory_limit_bytes
    return had is None or raised_limit(agent, had) is None


def is_near(used_bytes: int, limit_bytes: int) -> bool:
    """Say whether so much memory calls for a higher limit than this."""
    return used_bytes >= limit_bytes * NEAR_LIMIT


def _raised(agent: TriageAgent, own: int, limit: int) -> int:
    return min(_cap(agent, own), math.ceil(limit * agent.spec.resume.memory.factor))


def _cap(agent: TriageAgent, own: int) -> int:
    cap = agent.spec.resume.memory.limit
    return own * DEFAULT_CAP if cap is None else parse_memory(cap)
