"""What identifies an agent tree, and how an app is made resumable."""

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.tools.base_tool import BaseTool
from google.adk.workflow import BaseNode, Workflow

from triage_agent.exceptions import ShapeRefusedError
from triage_agent.kinds import kind_of, kind_of_code
from triage_agent.shapes.refusing import refusal, refusal_apart
from triage_agent.trees import agents_apart, children_of, is_control, kind_of_node, tools_of, walk, walk_all
from triage_contract.states import ToolKind
from triage_contract.verdict import Root


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An accepted tree.

    ``fingerprint`` is 16 hex digits over its names, types, modes, tools, edges and order. ``tools`` are the kinds of
    its tools and of the functions that are nodes of its workflows, by name; two of one name are as little declared as
    the less declared one. Toolsets are not among them.
    """

    root: Root
    fingerprint: str
    tools: Mapping[str, ToolKind] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give what the run's row records of the tree."""
        return {
            "name": self.root.name,
            "kind": self.root.kind.value,
            "fingerprint": self.fingerprint,
            "tools": {name: kind.value for name, kind in sorted(self.tools.items())},
        }


def resumable(app: App) -> App:
    """Return the app, as a copy with resumability switched on where its author did not do so."""
    if app.resumability_config is not None and app.resumability_config.is_resumable:
        return app
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*EXPERIMENTAL", category=UserWarning)
        return app.model_copy(update={"resumability_config": ResumabilityConfig(is_resumable=True)})


def inspect_shape(app: App, declared: Mapping[str, ToolKind]) -> Shape:
    """See that a killed run of the app can be resumed.

    Args:
        app: the app as its author made it.
        declared: the kinds of tools by name from the TriageAgent.

    Raises:
        ShapeRefusedError: it cannot; the message names the node and says why.
        ConfigurationError: a tool declares something that is no kind.
    """
    root = app.root_agent
    assert root is not None  # ``App`` refuses that itself.
    kind = kind_of_node(root)
    if kind is None:
        raise ShapeRefusedError(f"{root.name}: the root must be an agent or a Workflow, not a bare node")
    for node, parent in walk(root):
        _refuse(node, refusal(node, parent, declared))
        for apart in agents_apart(node):
            for inner in walk_all(apart):
                _refuse(inner, refusal_apart(inner, declared))
    digest = hashlib.sha256(json.dumps(_describe(root), sort_keys=True).encode())
    return Shape(
        root=Root(name=root.name, kind=kind),
        fingerprint=digest.hexdigest()[:16],
        tools=_kinds(root, declared),
    )


def _refuse(node: BaseNode, reason: str | None) -> None:
    if reason is not None:
        raise ShapeRefusedError(f"agent {node.name!r} cannot be resumed safely: {reason}")


def _kinds(root: BaseNode, declared: Mapping[str, ToolKind]) -> dict[str, ToolKind]:
    kinds: dict[str, ToolKind] = {}
    for node in walk_all(root):
        found = {tool.name: kind_of(tool, declared) for tool in tools_of(node) if _is_called(tool)}
        code = kind_of_code(node, declared)
        for name, kind in (found if code is None else {**found, node.name: code}).items():
            kinds[name] = ToolKind.UNDECLARED if kinds.get(name) is ToolKind.UNDECLARED else kind
    return kinds


def _is_called(tool: BaseTool) -> bool:
    """Whether its calls do something: some of ADK's tools only steer, or add to the request, or the model runs them."""
    return not is_control(tool) and type(tool)._get_declaration is not BaseTool._get_declaration


def _describe(node: BaseNode) -> dict[str, Any]:
    graph = node.graph if isinstance(node, Workflow) else None
    return {
        "name": node.name,
        "type": type(node).__name__,
        "mode": getattr(node, "mode", None),
        "tools": [_describe_tool(tool) for tool in (node.tools if isinstance(node, LlmAgent) else ())],
        "edges": [
            [edge.from_node.name, edge.to_node.name, str(edge.route)]
            for edge in (graph.edges if graph else ())
        ],
        "children": [_describe(child) for child in (*children_of(node), *agents_apart(node))],
    }


def _describe_tool(tool: Any) -> list[str]:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return [type(tool).__name__, str(name)]
