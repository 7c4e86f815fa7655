"""What repeating a tool call does to the world: where it is declared, and which declaration holds.

A tool declares itself with a plain attribute, so that a user's own agent needs no import of this package:

    def read_page(name: str) -> dict: ...
    read_page.triage_kind = "ReadOnly"
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from google.adk.tools.base_tool import BaseTool

from triage_agent.exceptions import ConfigurationError
from triage_contract.states import ToolKind

KIND_ATTRIBUTE: Final = "triage_kind"
"""Attribute of a tool or its function, a value of ``ToolKind``. An agent's author writes it."""

Function = TypeVar("Function", bound=Callable[..., Any])


def read_only(function: Function) -> Function:
    """Declare that calls of a tool function change nothing."""
    setattr(function, KIND_ATTRIBUTE, ToolKind.READ_ONLY)
    return function


def idempotent(function: Function) -> Function:
    """Declare that a tool function does one thing per function call id, however often it is called."""
    setattr(function, KIND_ATTRIBUTE, ToolKind.IDEMPOTENT)
    return function


def kind_of(tool: BaseTool, declared: Mapping[str, ToolKind]) -> ToolKind:
    """Return the kind of a tool.

    The TriageAgent wins over the code, in both directions: whoever runs an agent knows the service behind a
    tool, and can correct an image without building it again (``Undeclared`` takes a declaration back). Then
    come the tool object, its function, and the annotations of an MCP tool.

    Args:
        tool: the tool as ADK knows it.
        declared: the kinds by tool name from the TriageAgent.

    Raises:
        ConfigurationError: the code declares something that is no kind.
    """
    if tool.name in declared:
        return declared[tool.name]
    for declarer in (tool, getattr(tool, "func", None)):
        value = getattr(declarer, KIND_ATTRIBUTE, None)
        if value is None:
            continue
        try:
            return ToolKind(value)
        except ValueError as error:
            kinds = ", ".join(ToolKind)
            raise ConfigurationError(
                f"tool {tool.name!r}: {KIND_ATTRIBUTE} is {value!r}, not one of {kinds}"
            ) from error
    return _annotated_kind(tool)


def _annotated_kind(tool: BaseTool) -> ToolKind:
    """Return what an MCP server says of its tool: ``ToolAnnotations`` of the MCP schema, each hint optional.

    ADK's ``McpTool`` keeps the server's description as ``raw_mcp_tool``. It is read by name, since the
    ``mcp`` package is not a dependency; its version 1 spells fields as on the wire, 2 in snake case.
    """
    annotations = getattr(getattr(tool, "raw_mcp_tool", None), "annotations", None)
    hints = {
        ToolKind.READ_ONLY: ("readOnlyHint", "read_only_hint"),
        ToolKind.IDEMPOTENT: ("idempotentHint", "idempotent_hint"),
    }
    for kind, spellings in hints.items():
        if any(getattr(annotations, spelling, None) is True for spelling in spellings):
            return kind
    return ToolKind.UNDECLARED
