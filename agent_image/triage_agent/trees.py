"""What an agent tree is made of, as ADK 2.13.0 runs it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm.task._finish_task_tool import FinishTaskTool
from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.loop_agent import LoopAgent
from google.adk.agents.parallel_agent import ParallelAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.tools._node_tool import NodeTool
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.set_model_response_tool import SetModelResponseTool
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool, transfer_to_agent
from google.adk.workflow import BaseNode, FunctionNode, Workflow
from google.adk.workflow._tool_node import _ToolNode

from triage_contract.verdict import RootKind

SHELLS: Final[Mapping[type[BaseAgent], RootKind]] = {
    SequentialAgent: RootKind.SEQUENTIAL,
    ParallelAgent: RootKind.PARALLEL,
    LoopAgent: RootKind.LOOP,
}
"""Agents that only run other agents."""

CONTROL_TOOLS: Final = frozenset({"transfer_to_agent", "exit_loop", "finish_task", "set_model_response"})
"""Names of ADK's own tools: what they do is in their event actions, and ADK does it again from the events alone."""


def kind_of_node(node: BaseNode) -> RootKind | None:
    """Give a node's kind; None: a plain node. An agent whose class runs in a way of its own is custom."""
    if not isinstance(node, BaseAgent):
        return RootKind.WORKFLOW if isinstance(node, Workflow) else None
    kinds: dict[type[BaseAgent], RootKind] = {LlmAgent: RootKind.LLM, **SHELLS}
    for known, kind in kinds.items():
        if isinstance(node, known) and type(node)._run_async_impl is known._run_async_impl:
            return kind
    return RootKind.CUSTOM


def children_of(node: BaseNode) -> list[BaseNode]:
    """Give what runs below a node in its session: sub-agents, nodes of a workflow, and nodes that serve as tools."""
    return list(node._iter_static_children())


def walk(node: BaseNode, parent: BaseNode | None = None) -> Iterator[tuple[BaseNode, BaseNode | None]]:
    """Give each node of a tree, with its parent; None: the root has none."""
    yield node, parent
    for child in children_of(node):
        yield from walk(child, node)


def walk_all(node: BaseNode) -> Iterator[BaseNode]:
    """Give each node of a tree, and of those that it runs apart."""
    for it, _ in walk(node):
        yield it
        for apart in agents_apart(it):
            yield from walk_all(apart)


def agents_apart(node: BaseNode) -> list[BaseAgent]:
    """Give the agents that run in sessions of their own; ADK's tools for sub-agents run them in the same session."""
    if not isinstance(node, LlmAgent):
        return []
    tools = (tool for tool in node.tools if isinstance(tool, AgentTool))
    return [tool.agent for tool in tools if tool.agent not in node.sub_agents]


def is_control(tool: BaseTool) -> bool:
    """Whether a tool is one of ADK's own that only steer the agent; one of a user's may have the name of one."""
    return isinstance(tool, FinishTaskTool | SetModelResponseTool | TransferToAgentTool) or (
        isinstance(tool, FunctionTool) and tool.func in (exit_loop, transfer_to_agent)
    )


def tools_of(node: BaseNode) -> list[BaseTool]:
    """Give the tools of one node. What is inside a toolset is not known before it is opened, and left out."""
    if isinstance(node, _ToolNode):
        return [node.tool]
    return (
        [_as_tool(it) for it in node.tools if not isinstance(it, BaseToolset)]
        if isinstance(node, LlmAgent)
        else []
    )


def has_own_code(node: BaseNode) -> bool:
    """Whether a node's class runs in a way of its own, and not in one of ADK's."""
    if isinstance(node, BaseAgent):
        return kind_of_node(node) is RootKind.CUSTOM
    return not type(node)._run_impl.__module__.startswith("google.adk.")


def function_of(node: object) -> Any:
    """Give the function that a node of a workflow, or one that serves as a tool, calls; None: it calls none."""
    return node._func if isinstance(node, FunctionNode) else None


def _as_tool(it: Any) -> BaseTool:
    if isinstance(it, BaseTool):
        return it
    return NodeTool(it) if isinstance(it, BaseNode) else FunctionTool(it)
