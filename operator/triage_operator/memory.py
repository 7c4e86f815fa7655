"""Memory for the next attempt: raised after each OOM kill, up to a cap."""

import math
from collections.abc import Sequence
from typing import Final

from triage_contract.api import TriageAgent
from triage_contract.database.rows import AttemptRow
from triage_contract.quantities import parse_memory
from triage_contract.states import Cause

DEFAULT_CAP: Final = 4
"""The cap where the agent sets none, as a multiple of its own limit."""


def agent_limit(agent: TriageAgent) -> int | None:
    """Give the memory limit of the agent's own resources in bytes; None: it has none, and nothing is ever raised."""
    text = agent.spec.resources.limits.get("memory")
    # Kubernetes takes a limit of 0 for none.
    return (parse_memory(text) or None) if text is not None else None


def next_limit(agent: TriageAgent, attempts: Sequence[AttemptRow]) -> int | None:
    """Give the next attempt's memory limit in bytes: the agent's own, or what an OOM kill calls for; None: none."""
    own = agent_limit(agent)
    if own is None:
        return None
    killed_at = (attempt.memory_limit_bytes for attempt in attempts if attempt.cause is Cause.OOM)
    return max(own, *(_raised(agent, own, limit) for limit in killed_at if limit is not None), 0)


def is_at_cap(attempt: AttemptRow, agent: TriageAgent) -> bool:
    """Say whether an OOM kill of this attempt would leave nothing to raise."""
    own, had = agent_limit(agent), attempt.memory_limit_bytes
    return own is None or had is None or max(own, _raised(agent, own, had)) <= had


def _raised(agent: TriageAgent, own: int, limit: int) -> int:
    growth = agent.spec.resume.memory
    cap = own * DEFAULT_CAP if growth.limit is None else parse_memory(growth.limit)
    return min(cap, math.ceil(limit * growth.factor))
