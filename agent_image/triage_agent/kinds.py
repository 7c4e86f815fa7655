"""What repeating a tool call does to the world: where it is declared, and which declaration holds.

A tool declares itself with plain attributes, so that a user's own agent needs no import of this package:

    def read_page(name: str) -> dict: ...
    read_page.triage_kind = "ReadOnly"

An ``Idempotent`` tool gives the other side a key that is the same whenever its call runs again: ``effect_key``
makes one. A ``Reconcile`` tool leaves that key outside, and its function looks for it there.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import Any, Final, TypeVar
from urllib.parse import quote

from google.adk.tools._node_tool import NodeTool
from google.adk.tools.agent_tool import AgentTool, _SingleTurnAgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import BaseNode, FunctionNode

from triage_agent.exceptions import ConfigurationError
from triage_agent.trees import function_of, has_own_code, walk_all
from triage_contract.names import EFFECT_KEY_PREFIX
from triage_contract.states import ToolKind
from triage_contract.verdict.doubts import REPEATABLE

KIND_ATTRIBUTE: Final = "triage_kind"
"""Attribute of a tool or its function, a value of ``ToolKind``. An agent's author writes it."""

RECONCILE_ATTRIBUTE: Final = "triage_reconcile"
"""Attribute of a tool or its function, a ``Reconcile``. An agent's author writes it."""

EFFECT_KEY_ATTRIBUTE: Final = "triage_effect_key"
"""Attribute of a tool or its function, an ``EffectKey``. An agent's author writes it."""

NOT_PERFORMED_ATTRIBUTE: Final = "triage_not_performed"
"""Attribute, True, of an error that a tool raises when it is certain that nothing happened."""

_AGENT_RUNS: Final = (AgentTool.run_async, _SingleTurnAgentTool.run_async)

Function = TypeVar("Function", bound=Callable[..., Any])

Outside = Mapping[str, Any] | bool | None
"""What became of a call: its result; False: nothing of it is there; None: nobody knows, nor does True tell."""

Reconcile = Callable[[Mapping[str, Any], str, datetime], Outside | Awaitable[Outside]]
"""Asks the outside world about a call by its arguments, its key, and when it began, with a time zone.

The key is the one that the tool declared for it (``EffectKey``), else what ``effect_key`` gave the tool. It runs before
the agent does, in a thread unless it is ``async``; an error that it raises means that nobody knows.
"""

EffectKey = Callable[[Mapping[str, Any]], str] | str
"""A key of an effect, or what makes one of a call's arguments: it holds in the session beyond the invocation."""

EFFECT_SESSION: Final[ContextVar[str | None]] = ContextVar("triage_effect_session", default=None)
"""Id of the session that is worked on. Set by the attempt; None: there is none, and a tool's own session counts."""

_MAX_KEY_LENGTH: Final = 200
"""Longer keys are digested: Postgres indexes nothing above about 2,700 bytes."""


class NotPerformed(Exception):
    """Raised by a tool with effects when nothing happened: the agent is told, and may do something else."""

    triage_not_performed = True


def read_only(function: Function) -> Function:
    """Declare that calls of a tool function change nothing."""
    setattr(function, KIND_ATTRIBUTE, ToolKind.READ_ONLY)
    return function


def idempotent(function: Function) -> Function:
    """Declare that a tool function does one thing per function call id, however often it is called."""
    setattr(function, KIND_ATTRIBUTE, ToolKind.IDEMPOTENT)
    return function


def reconciled_by(reconcile: Reconcile) -> Callable[[Function], Function]:
    """Declare that a function finds out what became of a call whose end is not known."""

    def declare(function: Function) -> Function:
        setattr(function, KIND_ATTRIBUTE, ToolKind.RECONCILE)
        setattr(function, RECONCILE_ATTRIBUTE, reconcile)
        return function

    return declare


def effect(*, key: EffectKey) -> Callable[[Function], Function]:
    """Declare that calls with the same key are one effect in a session, whichever invocation asks for it."""

    def declare(function: Function) -> Function:
        setattr(function, EFFECT_KEY_ATTRIBUTE, key)
        return function

    return declare


def effect_key(context: ToolContext) -> str:
    """Give a text that is the same whenever a call runs again, and differs from that of any other call.

    An agent that runs as a tool has a new session each time: the key names the one that it was called from.
    """
    session_id = EFFECT_SESSION.get() or context.session.id
    return outside_key(session_id, context.function_call_id or "")


def outside_key(session_id: str, function_call_id: str) -> str:
    """Give the key under which the outside world knows a call of a session."""
    return f"{quote(session_id, safe='')}/{function_call_id}"


def has_declared_key(tool: BaseTool) -> bool:
    """Whether a tool declares a key for the effects of its calls."""
    return _attribute(tool, EFFECT_KEY_ATTRIBUTE) is not None


def declared_key(tool: BaseTool, args: Mapping[str, Any]) -> str | None:
    """Give the key that a tool declares for the effect of a call; None: it declares none.

    Raises:
        ConfigurationError: what it declares gives no key.
    """
    declared: EffectKey | None = _attribute(tool, EFFECT_KEY_ATTRIBUTE)
    if declared is None:
        return None
    key = declared(args) if callable(declared) else declared
    if not isinstance(key, str) or not key:
        raise ConfigurationError(f"tool {tool.name!r}: {EFFECT_KEY_ATTRIBUTE} gives {key!r}, not a text")
    return key


def journal_key(tool_name: str, key: str) -> str:
    """Give the journal's key of an effect that has one of its own."""
    is_plain = len(key) <= _MAX_KEY_LENGTH and key.isprintable()
    kept = key if is_plain else hashlib.sha256(key.encode(errors="backslashreplace")).hexdigest()
    return f"{EFFECT_KEY_PREFIX}{tool_name}:{kept}"


def reconcile_of(tool: BaseTool) -> Reconcile | None:
    """Give the function that finds out what became of a tool's calls; None: it has none."""
    found: Reconcile | None = _attribute(tool, RECONCILE_ATTRIBUTE)
    return found


def is_not_performed(error: BaseException) -> bool:
    """Whether an error, or one that it was raised from, says that nothing happened."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        if getattr(one, NOT_PERFORMED_ATTRIBUTE, None) is True:
            return True
        seen.add(id(one))
        one = one.__cause__
    return False


def kind_of(tool: BaseTool, declared: Mapping[str, ToolKind]) -> ToolKind:
    """Return the kind of a tool.

    The TriageAgent wins over the code, in both directions: whoever runs an agent knows the service behind a
    tool, and can correct an image without building it again (``Undeclared`` takes a declaration back). Then
    come the tool object, its function, and the annotations of an MCP tool. An agent or a workflow that runs as a
    tool is ``Idempotent`` by itself: what it does is journaled call by call, so it runs again and repeats none. That
    is not so where it has code of its own that nobody declared, or keeps its calls from the plugins.

    Args:
        tool: the tool as ADK knows it.
        declared: the kinds by tool name from the TriageAgent.

    Raises:
        ConfigurationError: the code declares something that is no kind, or ``Reconcile`` without a function for it.
    """
    kinds = (attributed_kind(tool.name, declarer) for declarer in _declarers(tool))
    kind = declared.get(tool.name) or next((kind for kind in kinds if kind is not None), None)
    if kind is ToolKind.RECONCILE and reconcile_of(tool) is None:
        raise ConfigurationError(
            f"tool {tool.name!r} is {kind}, but has no function to ask: {RECONCILE_ATTRIBUTE} is not set"
        )
    return kind or (ToolKind.IDEMPOTENT if _is_container(tool, declared) else _annotated_kind(tool))


def _declarers(tool: BaseTool) -> Iterator[object]:
    """Give what can carry a tool's attributes, the strongest first."""
    yield from (tool, getattr(tool, "func", None), function_of(getattr(tool, "node", None)))


def _attribute(tool: BaseTool, name: str) -> Any:
    """Give a tool's attribute from the strongest that carries it; None: nothing does."""
    found = (getattr(declarer, name, None) for declarer in _declarers(tool))
    return next((it for it in found if it is not None), None)


def attributed_kind(name: str, declarer: object) -> ToolKind | None:
    """Return the kind that a tool or its function declares with its attribute; None: it declares none.

    Raises:
        ConfigurationError: it declares something that is no kind.
    """
    value = getattr(declarer, KIND_ATTRIBUTE, None)
    if value is None:
        return None
    try:
        return ToolKind(value)
    except ValueError as error:
        kinds = ", ".join(ToolKind)
        raise ConfigurationError(
            f"tool {name!r}: {KIND_ATTRIBUTE} is {value!r}, not one of {kinds}"
        ) from error


def kind_of_code(node: BaseNode, declared: Mapping[str, ToolKind]) -> ToolKind | None:
    """Return the kind of what a node does by code of its own, beside all journals; None: it has no such code.

    Raises:
        ConfigurationError: the code declares something that is no kind.
    """
    code = function_of(node)
    if code is None and not has_own_code(node):
        return None
    return declared.get(node.name) or attributed_kind(node.name, code or node) or ToolKind.UNDECLARED


def _is_container(tool: BaseTool, declared: Mapping[str, ToolKind]) -> bool:
    """Whether a tool does nothing but model calls and tool calls that pass the plugins, or what may run again."""
    if isinstance(tool, AgentTool):
        if not tool.include_plugins or type(tool).run_async not in _AGENT_RUNS:
            return False
        inside: BaseNode = tool.agent
    elif isinstance(tool, NodeTool) and not isinstance(tool.node, FunctionNode):
        inside = tool.node
    else:
        return False
    kinds = {kind_of_code(node, declared) for node in walk_all(inside)}
    return kinds <= {None, *REPEATABLE}


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
