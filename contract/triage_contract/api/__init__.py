"""The API ``triage-operator.dev/v1alpha1``: TriageRun and TriageAgent."""

from triage_contract.api.agent import AgentSpec, AgentStatus, TriageAgent
from triage_contract.api.conditions import AgentCondition, Condition, ConditionStatus, RunCondition
from triage_contract.api.parsing import parse_agent, parse_run
from triage_contract.api.run import AttemptStatus, RunSpec, RunStatus, ToolCallCounts, TriageRun

__all__ = [
    "AgentCondition",
    "AgentSpec",
    "AgentStatus",
    "AttemptStatus",
    "Condition",
    "ConditionStatus",
    "RunCondition",
    "RunSpec",
    "RunStatus",
    "ToolCallCounts",
    "TriageAgent",
    "TriageRun",
    "parse_agent",
    "parse_run",
]
