"""The resources that the operator watches and lists."""

from typing import Final

from triage_contract.names import MANAGER, Label

RUNS: Final = "triageruns"
AGENTS: Final = "triageagents"
PODS: Final = "pods"
NODES: Final = "nodes"
WATCHED: Final = (RUNS, AGENTS, PODS)
"""Plural names of what is always watched; nodes are where that is allowed."""

OUR_PODS: Final = f"{Label.MANAGED_BY}={MANAGER}"
"""Selects the pods of attempts."""
