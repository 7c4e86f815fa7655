"""Which agent trees ADK 2.13.0 can resume, what identifies one, and how an app is made resumable.

What is refused here was seen to lose calls, to start over or to hang when it was killed and resumed; what is accepted,
to finish from every point (``tests/agent/test_resuming_shapes.py``). Some things cannot be seen in a tree: a
``before_agent_callback`` that writes state, which makes ADK pass over the call that was killed; nodes that a function
of a workflow runs by itself; the tools of a toolset.
"""

import hashlib
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import BaseNode, Workflow

from triage_agent.exceptions import ShapeRefusedError
from triage_agent.kinds import kind_of
from triage_contract.states import ToolKind
from triage_contract.verdict import Root, RootKind

SAVES_STATE: Final = "triage_saves_state"
"""Attribute, True, with which the author of a custom agent says that it stores its state and its end marker."""

_SHELLS: Final[Mapping[type[BaseAgent], RootKind]] = {
    SequentialAgent: RootKind.SEQUENTIAL,
    ParallelAgent: RootKind.PARALLEL,
    LoopAgent: RootKind.LOOP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An accepted tree. ``fingerprint`` is 16 hex digits over its names, types, modes, tools, edges and order."""

    root: Root
    fingerprint: str

    def to_json(self) -> dict[str, str]:
        """Give what the run's row records of the tree."""
        return {"name": self.root.name, "kind": self.root.kind.value, "fingerprint": self.fingerprint}


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
    kind = _kind(root)
    if kind is None:
        raise ShapeRefusedError(f"{root.name}: the root must be an agent or a Workflow, not a bare node")
    for node, parent in _walk(root, None):
        reason = _refusal(node, parent) or _refusal_of_tools(node, declared)
        if reason is not None:
            raise ShapeRefusedError(f"agent {node.name!r} cannot be resumed safely: {reason}")
    digest = hashlib.sha256(json.dumps(_describe(root), sort_keys=True).encode())
    return Shape(root=Root(name=root.name, kind=kind), fingerprint=digest.hexdigest()[:16])


def _walk(node: BaseNode, parent: BaseNode | None) -> Iterator[tuple[BaseNode, BaseNode | None]]:
    yield node, parent
    for child in _children(node):
        yield from _walk(child, node)


def _children(node: BaseNode) -> list[BaseNode]:
    # ADK's own way to look at a tree: sub-agents, workflow nodes, and nodes that serve as tools.
    return list(node._iter_static_children())


def _kind(node: BaseNode) -> RootKind | None:
    """Give a node's kind; None: a plain node. An agent whose class runs in a way of its own is custom."""
    if not isinstance(node, BaseAgent):
        return RootKind.WORKFLOW if isinstance(node, Workflow) else None
    kinds: dict[type[BaseAgent], RootKind] = {LlmAgent: RootKind.LLM, **_SHELLS}
    for known, kind in kinds.items():
        if isinstance(node, known) and type(node)._run_async_impl is known._run_async_impl:
            return kind
    return RootKind.CUSTOM


def _refusal(node: BaseNode, parent: BaseNode | None) -> str | None:
    kind, in_workflow = _kind(node), parent is not None and not isinstance(parent, BaseAgent)
    if kind is RootKind.CUSTOM and getattr(node, SAVES_STATE, None) is not True:
        return (
            f"{type(node).__name__} is a custom agent, of which ADK stores neither state nor end; if it stores both"
            f" itself, it says so with {SAVES_STATE} = True"
        )
    if isinstance(node, LlmAgent):
        if node.mode == "task" and parent is None:
            return "a root in task mode stores no end"
        if node.mode == "task":
            return (
                "ADK hangs when it resumes a run in which a second task has ended; mode='single_turn' works"
            )
        if node.mode == "chat" and in_workflow:
            return "as a node in chat mode it waits for its user after each reply"
    if kind in _SHELLS.values():
        if in_workflow:
            return "ADK skips its steps when it resumes it as a node; make its steps nodes of a Workflow"
        if isinstance(parent, LlmAgent):
            return f"ADK loses the calls of its steps when it resumes a transfer from {parent.name!r} to it"
    return None


def _refusal_of_tools(node: BaseNode, declared: Mapping[str, ToolKind]) -> str | None:
    """Find tools whose calls would get a new id at each attempt, so that neither journal nor key know them again."""
    effect = _effect(getattr(node, "tool", None), declared)  # The tool of a workflow's tool node.
    if effect is not None:
        return f"{effect!r} as a node has another call id at each attempt, and is not declared ReadOnly"
    for apart in _agents_apart(node):
        for inner, _ in _walk(apart, None):
            for tool in inner.tools if isinstance(inner, LlmAgent) else ():
                if (effect := _effect(tool, declared)) is not None:
                    return (
                        f"{effect!r} inside the AgentTool {apart.name!r} has another call id at each attempt, and is"
                        " not declared ReadOnly; in a sub-agent with mode='single_turn' it keeps its ids"
                    )
    return None


def _agents_apart(node: BaseNode) -> list[BaseAgent]:
    """Give the agents that run in sessions of their own; ADK's tools for sub-agents run them in the same session."""
    if not isinstance(node, LlmAgent):
        return []
    tools = (tool for tool in node.tools if isinstance(tool, AgentTool))
    return [tool.agent for tool in tools if tool.agent not in node.sub_agents]


def _effect(tool: Any, declared: Mapping[str, ToolKind]) -> str | None:
    """Give a tool's name, unless its calls change nothing. What is inside a toolset is not known before it runs."""
    if tool is None:
        return None
    if not isinstance(tool, BaseTool):
        if not callable(tool):
            return type(tool).__name__
        tool = FunctionTool(tool)
    return None if kind_of(tool, declared) is ToolKind.READ_ONLY else tool.name


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
        "children": [_describe(child) for child in (*_children(node), *_agents_apart(node))],
    }


def _describe_tool(tool: Any) -> list[str]:
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return [type(tool).__name__, str(name)]
