"""Conditions of runs and agents. Pure, and equal for equal input."""

from datetime import datetime

from triage_contract.api import (
    AgentCondition,
    Condition,
    ConditionStatus,
    RunCondition,
    TriageAgent,
    TriageRun,
)
from triage_contract.api.run import MAX_MESSAGE_LENGTH
from triage_operator.reasons import Reason


def build_condition(
    thing: TriageRun | TriageAgent,
    kind: RunCondition | AgentCondition,
    *,
    holds: bool,
    reason: Reason,
    message: str,
    now: datetime,
) -> Condition:
    """Build a condition of an object. The time of its transition stands for as long as its status does."""
    status = ConditionStatus.TRUE if holds else ConditionStatus.FALSE
    standing = (
        condition.last_transition_time
        for condition in thing.status.conditions
        if (condition.type, condition.status) == (kind, status)
    )
    return Condition(
        type=kind.value,
        status=status,
        reason=reason.value,
        message=message[:MAX_MESSAGE_LENGTH],
        last_transition_time=next(standing, now.replace(microsecond=0)),
        observed_generation=thing.metadata.generation,
    )
