"""The tools of an agent, as the record of its tree in a run's row names them."""

from collections.abc import Mapping
from typing import Any

from triage_contract.states import ToolKind


def undeclared_tools(root: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Give the names of those of which nobody said what repeating them does, sorted.

    Args:
        root: the ``root`` of a run's row. The agent writes it at its first claim; None: no attempt came that far.
            Releases before 0.2 record no tools.
    """
    tools: Mapping[str, Any] = (root or {}).get("tools", {})
    return tuple(sorted(name for name, kind in tools.items() if kind == ToolKind.UNDECLARED))
