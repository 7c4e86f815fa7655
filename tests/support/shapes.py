"""The table of shapes: agent trees, and what a resume does to each. ``docs/shapes.md`` shows the same table."""

from collections.abc import Callable
from dataclasses import dataclass

from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from google.adk.models.google_llm import Gemini
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext

from support.golden_agents import (
    AGENTS,
    ASK_SILENTLY,
    BARE,
    BYE,
    CONFIRMED,
    FILE,
    READ,
    READ_TEXT,
    agent,
    ask_silently,
    file_issue,
    llm,
    read_page,
    workflow,
)
from support.golden_turns import Recording, Turn, answer, call
from triage_contract.states import ToolKind

GOES_ON = "goes on"
AS_WRITTEN = "as written"
STARTS_OVER = "starts over"
REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A row: how a resume treats the shape, and what else is to be said of it. ``build`` None: a recorded agent.

    ``unsaid`` are replies that a death may spare the model.
    """

    title: str
    resume: str
    recorded: str = ""
    note: str = ""
    unsaid: int = 0
    build: Callable[[], Recording] | None = None

    def recording(self) -> Recording:
        return AGENTS[self.recorded]() if self.build is None else self.build()


def helper(*tools: object) -> AgentTool:
    """An agent that runs as a tool, and files an issue."""
    return AgentTool(
        agent("helper", READ, FILE, BYE, tools=[read_page, file_issue, *tools], description="Helps.")
    )


def prepare(node_input: object) -> dict[str, str]:
    return {"title": "Tokens"}


KINDS = {
    "file_issue": ToolKind.IDEMPOTENT,
    "ask_editor": ToolKind.IDEMPOTENT,
    "ask_silently": ToolKind.IDEMPOTENT,
    "read_page": ToolKind.READ_ONLY,
    "index_pages": ToolKind.READ_ONLY,
    "leave": ToolKind.READ_ONLY,
}


def leave(tool_context: ToolContext) -> str:
    tool_context.actions.escalate = True
    return "left"


HELP = call("helper", request="File it.")
CONFIRM = Turn(message=answer("adk_request_confirmation", confirmed=True))
ANSWERED = answer("ask_silently", approved=True)

ACCEPTED = [
    Shape(title="one LlmAgent", recorded="single", resume=GOES_ON),
    Shape(title="one LlmAgent, parallel calls", recorded="parallel_calls", resume=GOES_ON),
    Shape(title="one LlmAgent with an `output_schema`", recorded="single_with_schema", resume=GOES_ON),
    Shape(
        title="one LlmAgent whose callbacks write state",
        recorded="single_with_state_callbacks",
        resume=GOES_ON,
        note="Its callbacks run again at each resume.",
    ),
    Shape(
        title="`before_agent_callback` that returns content",
        recorded="before_agent_content",
        resume=GOES_ON,
    ),
    Shape(title="SequentialAgent", recorded="sequential", resume=GOES_ON),
    Shape(title="ParallelAgent", recorded="parallel", resume=GOES_ON),
    Shape(
        title="ParallelAgent that a branch escalates out of",
        recorded="parallel_escalation",
        resume=GOES_ON,
        note="ADK cancels the other branches; a call that was under way there stays in doubt.",
    ),
    Shape(title="LoopAgent", recorded="loop", resume=GOES_ON),
    Shape(title="LoopAgent that ends by `exit_loop`", recorded="loop_exit", resume=GOES_ON),
    Shape(
        title="LoopAgent that ends by a tool of its own",
        build=lambda: Recording(
            root=LoopAgent(
                name="loop",
                max_iterations=3,
                sub_agents=[agent("docs", FILE, call("leave"), BYE, tools=[file_issue, leave])],
            ),
            kind="loop",
        ),
        resume=GOES_ON,
    ),
    Shape(
        title="Sequential, Parallel and Loop inside each other",
        recorded="sequential_of_shells",
        resume=GOES_ON,
    ),
    Shape(
        title="a step of a SequentialAgent that transfers",
        recorded="sequential_with_transfer",
        resume=GOES_ON,
    ),
    Shape(title="transfer to a sub-agent", recorded="transfer", resume=GOES_ON),
    Shape(title="transfer there and back", recorded="transfer_and_back", resume=GOES_ON),
    Shape(title="transfer between peers", recorded="transfer_between_peers", resume=GOES_ON),
    Shape(title="sub-agent in mode `single_turn`", recorded="single_turn_sub_agent", resume=STARTS_OVER),
    Shape(
        title="AgentTool",
        build=lambda: llm(agent("docs", HELP, BYE, tools=[helper()])),
        resume=STARTS_OVER,
        note="Its session is in memory: nothing of it is stored but replies and calls.",
    ),
    Shape(
        title="AgentTool of a SequentialAgent",
        build=lambda: llm(
            agent(
                "docs",
                call("pipe", request="File it."),
                BYE,
                tools=[
                    AgentTool(
                        SequentialAgent(
                            name="pipe",
                            description="Files.",
                            sub_agents=[agent("reader", READ, READ_TEXT), agent("filer", FILE, BYE)],
                        )
                    )
                ],
            )
        ),
        resume=STARTS_OVER,
        note="So are trees that are refused elsewhere.",
    ),
    Shape(
        title="AgentTool inside an AgentTool, two calls at once",
        build=lambda: llm(
            agent(
                "docs",
                [call("desk", request="One."), call("desk", request="Two.")],
                BYE,
                tools=[AgentTool(agent("desk", HELP, BYE, tools=[helper()], description="Asks."))],
            )
        ),
        resume=STARTS_OVER,
    ),
    Shape(
        title="Workflow of functions",
        recorded="workflow_functions",
        resume=STARTS_OVER,
        note="A function that ended is not run again; one that returned None, or was killed, is.",
    ),
    Shape(
        title="Workflow with a tool as a node",
        build=lambda: workflow(prepare, FunctionTool(file_issue)),
        resume=STARTS_OVER,
        note="Its call is journaled like that of a model.",
    ),
    Shape(title="Workflow with an LLM node", recorded="workflow_llm_node", resume=STARTS_OVER),
    Shape(title="Workflow that ends with an LLM node", recorded="workflow_llm_last", resume=STARTS_OVER),
    Shape(title="Workflow with branches and a join", recorded="workflow_branches", resume=STARTS_OVER),
    Shape(title="Workflow inside a Workflow", recorded="workflow_nested", resume=STARTS_OVER),
    Shape(title="Workflow with parallel workers", recorded="workflow_parallel_workers", resume=STARTS_OVER),
    Shape(title="Workflow as a tool", recorded="workflow_as_tool", resume=STARTS_OVER),
    Shape(
        title="AgentTool inside an LLM node",
        build=lambda: workflow(agent("docs", HELP, BYE, tools=[helper()])),
        resume=STARTS_OVER,
    ),
    Shape(
        title="custom agent with `triage_saves_state = True`",
        recorded="custom_saved",
        resume=AS_WRITTEN,
        note="What it does beside its tools is as exactly once as it makes it.",
    ),
    Shape(
        title="long-running tool, pending result",
        recorded="long_running_pending",
        resume=GOES_ON,
        unsaid=1,
        note="Killed once it waits, it leaves out what the model would say meanwhile.",
    ),
    Shape(title="long-running tool that returns None", recorded="long_running_silent", resume=GOES_ON),
    Shape(
        title="long-running tool in a step of a SequentialAgent",
        build=lambda: Recording(
            root=SequentialAgent(
                name="pipe",
                sub_agents=[
                    agent("editor", ASK_SILENTLY, BYE, tools=[LongRunningFunctionTool(ask_silently)]),
                    agent("filer", FILE, BYE),
                ],
            ),
            kind="sequential",
            turns=(BARE, Turn(message=ANSWERED)),
        ),
        resume=GOES_ON,
    ),
    Shape(title="`require_confirmation`", recorded="confirmation", resume=GOES_ON),
    Shape(
        title="`require_confirmation` beside other calls",
        recorded="confirmation_beside_others",
        resume=GOES_ON,
    ),
    Shape(
        title="`require_confirmation` in a step of a SequentialAgent",
        build=lambda: Recording(
            root=SequentialAgent(
                name="pipe",
                sub_agents=[agent("filer", FILE, BYE, tools=[CONFIRMED]), agent("last", READ, READ_TEXT)],
            ),
            kind="sequential",
            turns=(BARE, CONFIRM),
        ),
        resume=GOES_ON,
    ),
    Shape(
        title="`require_confirmation` in a sub-agent in mode `single_turn`",
        build=lambda: llm(
            agent(
                "desk",
                call("filer", request="File it."),
                READ_TEXT,
                sub_agents=[agent("filer", FILE, BYE, mode="single_turn", tools=[CONFIRMED])],
            ),
            BARE,
            CONFIRM,
        ),
        resume=STARTS_OVER,
    ),
    Shape(
        title="`require_confirmation` in an LLM node",
        build=lambda: workflow(agent("docs", FILE, BYE, tools=[CONFIRMED]), turns=(BARE, CONFIRM)),
        resume=STARTS_OVER,
    ),
    Shape(title="RequestInput in a Workflow", recorded="workflow_request_input", resume=STARTS_OVER),
    Shape(
        title="`require_confirmation` of a tool as a node",
        build=lambda: workflow(
            prepare, CONFIRMED, turns=(BARE, Turn(message=answer("adk_request_input", confirmed=True)))
        ),
        resume=STARTS_OVER,
    ),
]

FILING = [
    "one LlmAgent",
    "SequentialAgent",
    "ParallelAgent",
    "transfer to a sub-agent",
    "sub-agent in mode `single_turn`",
    "AgentTool",
    "AgentTool inside an AgentTool, two calls at once",
    "AgentTool inside an LLM node",
    "Workflow with a tool as a node",
    "Workflow with an LLM node",
]
"""Shapes in each of whose different places an issue is filed."""

REFUSALS = [
    Shape(
        title="LlmAgent that transfers to a SequentialAgent",
        recorded="transfer_to_sequential",
        resume=REFUSED,
    ),
    Shape(
        title="SequentialAgent as a node of a Workflow", recorded="workflow_sequential_node", resume=REFUSED
    ),
    Shape(title="root in mode `task`", recorded="task_root", resume=REFUSED),
    Shape(title="sub-agent in mode `task`", recorded="task_sub_agent", resume=REFUSED),
    Shape(title="node of a Workflow in mode `task`", recorded="workflow_task_node", resume=REFUSED),
    Shape(title="node of a Workflow in mode `chat`", recorded="workflow_chat_node", resume=REFUSED),
    Shape(title="custom agent", recorded="custom", resume=REFUSED),
    Shape(
        title="the Gemini Interactions API",
        build=lambda: llm(LlmAgent(name="docs", model=Gemini(use_interactions_api=True))),
        resume=REFUSED,
    ),
    Shape(
        title="code of a model that ADK executes",
        build=lambda: llm(LlmAgent(name="docs", code_executor=UnsafeLocalCodeExecutor())),
        resume=REFUSED,
    ),
]
