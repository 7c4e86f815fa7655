"""Which declaration of a tool's kind holds."""

from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools._node_tool import NodeTool
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, FunctionNode, Workflow

from triage_agent.exceptions import ConfigurationError
from triage_agent.kinds import idempotent, kind_of, read_only
from triage_contract.states import ToolKind


def plain(text: str) -> str:
    return text


@read_only
def reads(text: str) -> str:
    return text


@idempotent
def files(text: str) -> str:
    return text


async def by_attribute(text: str) -> str:
    return text


by_attribute.triage_kind = "Idempotent"  # type: ignore[attr-defined]


class Pages:
    @read_only
    def read(self, text: str) -> str:
        return text


def mcp_tool(**annotations: bool | None) -> BaseTool:
    tool = BaseTool(name="remote", description="A tool of an MCP server.")
    tool.raw_mcp_tool = SimpleNamespace(annotations=SimpleNamespace(**annotations))  # type: ignore[attr-defined]
    return tool


def declaring_tool() -> BaseTool:
    tool = FunctionTool(reads)
    tool.triage_kind = "Idempotent"  # type: ignore[attr-defined]
    return tool


class Posting(AgentTool):
    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return await super().run_async(args=args, tool_context=tool_context)


def helper(*tools: Any) -> LlmAgent:
    return LlmAgent(name="helper", description="d", tools=list(tools))


def flow(*functions: Any) -> NodeTool:
    return NodeTool(Workflow(name="flow", description="d", input_schema=str, edges=[(START, *functions)]))


CASES: dict[str, tuple[BaseTool, dict[str, ToolKind], ToolKind]] = {
    "nothing is declared": (FunctionTool(plain), {}, ToolKind.UNDECLARED),
    "a function decorated as reading": (FunctionTool(reads), {}, ToolKind.READ_ONLY),
    "a function decorated as idempotent": (FunctionTool(files), {}, ToolKind.IDEMPOTENT),
    "a function with a plain attribute": (FunctionTool(by_attribute), {}, ToolKind.IDEMPOTENT),
    "a bound method": (FunctionTool(Pages().read), {}, ToolKind.READ_ONLY),
    "the tool object goes before its function": (declaring_tool(), {}, ToolKind.IDEMPOTENT),
    "the agent's map adds to the code": (
        FunctionTool(plain),
        {"plain": ToolKind.READ_ONLY},
        ToolKind.READ_ONLY,
    ),
    "the agent's map takes back what the code says": (
        FunctionTool(reads),
        {"reads": ToolKind.UNDECLARED},
        ToolKind.UNDECLARED,
    ),
    "the agent's map names another tool": (
        FunctionTool(reads),
        {"other": ToolKind.IDEMPOTENT},
        ToolKind.READ_ONLY,
    ),
    "an agent as a tool runs again by itself, whatever its tools are": (
        AgentTool(helper(plain)),
        {},
        ToolKind.IDEMPOTENT,
    ),
    "an agent as a tool that keeps its calls to itself": (
        AgentTool(helper(plain), include_plugins=False),
        {},
        ToolKind.UNDECLARED,
    ),
    "an agent as a tool that does something besides": (Posting(helper()), {}, ToolKind.UNDECLARED),
    "a custom agent as a tool": (AgentTool(BaseAgent(name="mine")), {}, ToolKind.UNDECLARED),
    "an agent as a tool with such a one inside": (
        AgentTool(helper(AgentTool(BaseAgent(name="mine")))),
        {},
        ToolKind.UNDECLARED,
    ),
    "an agent as a tool with one inside that may run again": (
        AgentTool(helper(AgentTool(BaseAgent(name="mine")))),
        {"mine": ToolKind.READ_ONLY},
        ToolKind.IDEMPOTENT,
    ),
    "an agent as a tool is what the agent's map says": (
        AgentTool(helper()),
        {"helper": ToolKind.UNDECLARED},
        ToolKind.UNDECLARED,
    ),
    "a workflow of tools as a tool": (flow(FunctionTool(plain)), {}, ToolKind.IDEMPOTENT),
    "a workflow of declared functions as a tool": (flow(reads), {}, ToolKind.IDEMPOTENT),
    "a workflow of functions as a tool": (flow(plain), {}, ToolKind.UNDECLARED),
    "a function node as a tool": (NodeTool(FunctionNode(func=reads)), {}, ToolKind.READ_ONLY),
    "MCP 1 says read-only": (mcp_tool(readOnlyHint=True), {}, ToolKind.READ_ONLY),
    "MCP 2 says idempotent": (mcp_tool(idempotent_hint=True), {}, ToolKind.IDEMPOTENT),
    "MCP says no to one and nothing of the other": (
        mcp_tool(readOnlyHint=False, idempotentHint=None),
        {},
        ToolKind.UNDECLARED,
    ),
}


@pytest.mark.parametrize(("tool", "declared", "kind"), CASES.values(), ids=CASES)
def test_kind_of(tool: BaseTool, declared: dict[str, ToolKind], kind: ToolKind) -> None:
    assert kind_of(tool, declared) is kind


def test_a_kind_that_is_none_names_the_tool() -> None:
    tool = FunctionTool(plain)
    tool.triage_kind = "readonly"  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match=r"tool 'plain': triage_kind is 'readonly'"):
        kind_of(tool, {})
