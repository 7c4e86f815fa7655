"""Agents that reply as told, and the app of each shape: ``chaos.agents:shape_N``."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, ClassVar

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.base_agent import BaseAgentState
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.context import Context
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event, RequestInput
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import START, Workflow
from google.genai.types import Content, Part

from chaos.models import Reply, ScriptedModel, call, say
from chaos.tools import TOOLS, file, pay, read


def agent(name: str, *replies: Reply, tools: Sequence[Any] = TOOLS, **fields: Any) -> LlmAgent:
    """An agent that replies as told."""
    return LlmAgent(name=name, model=ScriptedModel(name, replies), tools=list(tools), **fields)


def worker(name: str, **fields: Any) -> LlmAgent:
    """An agent that has two effects, the second of a kind that cannot be repeated."""
    return agent(name, call("file", title=name), call("pay", whom=name), say(f"{name} is done."), **fields)


def helper(name: str, *tools: Any) -> AgentTool:
    """A worker that runs as a tool."""
    return AgentTool(worker(name, tools=[read, file, pay, *tools], description="Helps."))


def hand_over(to: str) -> Part:
    """A transfer to another agent."""
    return call("transfer_to_agent", agent_name=to)


def flow(*edges: Any) -> Workflow:
    """A workflow whose nodes follow each other."""
    return Workflow(name="flow", edges=[(START, *edges)])


def outline(node_input: Any) -> str:
    """Make an outline."""
    return "outline"


def polish(node_input: Any) -> str:
    """Polish it."""
    return "polished"


def pages(node_input: Any) -> list[str]:
    """Name the pages."""
    return ["tokens", "deploy"]


def prepare(node_input: Any) -> dict[str, str]:
    """Give the arguments of the tool that is the next node."""
    return {"whom": "node"}


async def ask_which(ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
    """Ask a person, and go on with the answer."""
    if not ctx.resume_inputs:
        yield RequestInput(interrupt_id="which-page", message="Which page?")
        return
    yield Event(output=f"page {ctx.resume_inputs['which-page']}")


def refuse(callback_context: CallbackContext) -> Content:
    """Answer in the agent's place."""
    return Content(role="model", parts=[say("It is closed today.")])


def remember(callback_context: CallbackContext) -> None:
    """Write state."""
    callback_context.state["seen"] = True


class SavedSteps(BaseAgent):
    """A custom agent that stores its state and its end."""

    triage_saves_state: ClassVar[bool] = True

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        if self._load_agent_state(ctx, BaseAgentState) is None:
            ctx.set_agent_state(self.name, agent_state=BaseAgentState())
            said = self._create_agent_state_event(ctx)
            said.content = Content(role="model", parts=[say("It is done.")])
            yield said
        ctx.set_agent_state(self.name, end_of_agent=True)
        yield self._create_agent_state_event(ctx)
