"""One agent for each shape of tree that is accepted, with a tool of each kind; ``chaos.agents:NAME`` is its app."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.base_agent import BaseAgentState
from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, BaseNode, JoinNode, Workflow, node
from google.genai.types import Content, Part

from chaos.ledger import Ledger
from chaos.models import Reply, ScriptedModel, call, say
from triage_agent.kinds import idempotent, read_only, reconciled_by


@read_only
def read(page: str) -> dict[str, str]:
    """Read a page."""
    return {"text": f"{page} says nothing."}


@idempotent
def file(title: str, tool_context: ToolContext) -> dict[str, str]:
    """File an issue, once for each key."""
    Ledger.of_process().perform(f"file {title}", key=_key(tool_context), keyed=True)
    return {"filed": title}


def pay(whom: str, tool_context: ToolContext) -> dict[str, str]:
    """Pay somebody, as often as it is called: nobody declared what repeating it does."""
    Ledger.of_process().perform(f"pay {whom}", key=_key(tool_context), keyed=False)
    return {"paid": whom}


def _was_posted(args: Mapping[str, Any], key: str, begun_at: datetime) -> dict[str, str] | Literal[False]:
    posted = Ledger.of_process().has_effect(f"post {args['text']}")
    return {"posted": args["text"]} if posted else False


@reconciled_by(_was_posted)
async def post(text: str, tool_context: ToolContext) -> dict[str, str]:
    """Post a text, as often as it is called; it can be found again."""
    Ledger.of_process().perform(f"post {text}", key=_key(tool_context), keyed=False)
    return {"posted": text}


def _key(context: ToolContext) -> str:
    assert context.function_call_id is not None
    return context.function_call_id


TOOLS: Final[tuple[Any, ...]] = (read, file, pay, post)


def agent(name: str, *replies: Reply, tools: Sequence[Any] = TOOLS, **fields: Any) -> LlmAgent:
    """An agent that replies as told."""
    return LlmAgent(name=name, model=ScriptedModel(name, replies), tools=list(tools), **fields)


def worker(name: str, **fields: Any) -> LlmAgent:
    """An agent that has two effects, the second of a kind that cannot be repeated."""
    return agent(name, call("file", title=name), call("pay", whom=name), say(f"{name} is done."), **fields)


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


SHAPES: Final[Mapping[str, Callable[[], BaseNode]]] = {
    "one agent, a tool of each kind": lambda: agent(
        "docs",
        call("read", page="tokens"),
        call("file", title="a"),
        call("pay", whom="b"),
        call("post", text="c"),
        say("It is done."),
    ),
    "parallel calls": lambda: agent(
        "docs",
        [call("pay", whom="a"), call("post", text="b"), call("file", title="c"), call("read", page="d")],
        say("It is done."),
    ),
    "sequential": lambda: SequentialAgent(name="pipe", sub_agents=[worker("first"), worker("second")]),
    "parallel": lambda: ParallelAgent(name="fan", sub_agents=[worker("left"), worker("right")]),
    "loop": lambda: LoopAgent(name="loop", max_iterations=2, sub_agents=[worker("round")]),
    "shells in a shell": lambda: SequentialAgent(
        name="pipe",
        sub_agents=[
            ParallelAgent(name="fan", sub_agents=[worker("left"), worker("right")]),
            LoopAgent(name="loop", max_iterations=1, sub_agents=[worker("last")]),
        ],
    ),
    "transfer": lambda: agent("desk", hand_over("filer"), sub_agents=[worker("filer")]),
    "transfer there and back": lambda: agent(
        "desk",
        hand_over("filer"),
        say("It is done."),
        sub_agents=[agent("filer", call("pay", whom="a"), hand_over("desk"))],
    ),
    "transfer between peers": lambda: agent(
        "desk",
        hand_over("reader"),
        sub_agents=[agent("reader", call("pay", whom="a"), hand_over("filer")), worker("filer")],
    ),
    "transfer inside a sequence": lambda: SequentialAgent(
        name="pipe",
        sub_agents=[agent("desk", hand_over("filer"), sub_agents=[worker("filer")]), worker("last")],
    ),
    "sub-agent of one turn": lambda: agent(
        "desk",
        call("filer", request="File it."),
        say("It is done."),
        sub_agents=[worker("filer", mode="single_turn")],
    ),
    "workflow of functions": lambda: flow(outline, polish),
    "workflow, an agent as its last node": lambda: flow(outline, worker("docs")),
    "workflow, agents between functions": lambda: flow(outline, worker("docs"), polish),
    "workflow with branches": lambda: flow((worker("left"), worker("right")), JoinNode(name="join")),
    "workflow in a workflow": lambda: flow(
        outline, Workflow(name="inner", edges=[(START, worker("docs"))]), polish
    ),
    "workflow with parallel workers": lambda: flow(
        pages,
        node(agent("docs", call("read", page="a"), say("It is read.")), parallel_worker=True),
        polish,
    ),
    "custom agent that saves its state": lambda: SavedSteps(name="mine"),
    "agent as a tool": lambda: agent(
        "desk",
        call("reader", request="Read it."),
        call("pay", whom="b"),
        say("It is done."),
        tools=[pay, AgentTool(agent("reader", call("read", page="a"), say("It is read.")))],
    ),
}
"""Names are those of the table of shapes in the documentation."""

_PARALLEL: Final = frozenset(
    {"parallel", "shells in a shell", "workflow with branches", "workflow with parallel workers"}
)


def asked_at_once(shape: str) -> int:
    """How many models of a shape may be asked at the same time: so many replies are lost with a process."""
    return 2 if shape in _PARALLEL else 1


NAMES: Final = {name: f"shape_{at}" for at, name in enumerate(SHAPES)}
"""By shape, the attribute of this module that is its app."""


def __getattr__(name: str) -> App:
    """Build an app when somebody asks for it."""
    for shape, attribute in NAMES.items():
        if attribute == name:
            return App(name="chaos", root_agent=SHAPES[shape]())
    raise AttributeError(name)
