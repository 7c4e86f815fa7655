"""The agents whose runs are recorded: one for each shape of tree, gate and mishap that is to be judged.

``AGENTS`` maps a recording's name to a function that builds it anew.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, ClassVar

from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.base_agent import BaseAgentState
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.context import Context
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event, RequestInput
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import START, BaseNode, JoinNode, Workflow, node
from google.genai.types import Content, Part
from pydantic import BaseModel

from support.golden_turns import Recording, Reply, ScriptedModel, Turn, answer, call, say


def read_page(name: str) -> dict[str, str]:
    """Return a page."""
    return {"text": f"Tokens expire after {len(name)} days."}


def file_issue(title: str) -> dict[str, int]:
    """File an issue."""
    return {"number": 41}


async def index_pages() -> dict[str, int]:
    """Take longer than anything else here."""
    await asyncio.sleep(60)
    return {"pages": 4}


def fail(name: str) -> dict[str, str]:
    """Fail."""
    raise RuntimeError("the disk is full")


def ask_editor(title: str) -> dict[str, str]:
    """Ask, and say so."""
    return {"status": "pending"}


def ask_silently(title: str) -> None:
    """Ask, and return nothing."""


READ, FILE = call("read_page", name="tokens"), call("file_issue", title="Tokens expire")
ASK, ASK_SILENTLY = call("ask_editor", title="Tokens"), call("ask_silently", title="Tokens")
READ_TEXT, BYE = say("The page contradicts the report."), say("Filed issue 41.")
FINISH = call("finish_task", result="Filed issue 41.")
BLOCKED = LlmResponse(error_code="SAFETY", error_message="The reply was blocked.")
BOTH: tuple[Any, ...] = (read_page, file_issue)


def agent(name: str, *replies: Reply, tools: Sequence[Any] = BOTH, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(replies), tools=list(tools), **fields)


def transfer(to: str) -> Part:
    return call("transfer_to_agent", agent_name=to)


def llm(root: BaseNode, *turns: Turn) -> Recording:
    return Recording(root=root, kind="llm", turns=turns or (Turn(),))


def workflow(*edges: Any, turns: tuple[Turn, ...] = (Turn(),)) -> Recording:
    return Recording(root=Workflow(name="flow", edges=[(START, *edges)]), kind="workflow", turns=turns)


def outline(node_input: Any) -> str:
    return "outline"


def polish(node_input: Any) -> str:
    return "polished"


def list_pages(node_input: Any) -> list[str]:
    return ["tokens", "deploy"]


def break_down(node_input: Any) -> str:
    raise RuntimeError("the node broke")


async def ask_which(ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
    if not ctx.resume_inputs:
        yield RequestInput(interrupt_id="which-page", message="Which page?")
        return
    yield Event(output=f"page {ctx.resume_inputs['which-page']}")


def refuse(callback_context: CallbackContext) -> Content:
    return Content(role="model", parts=[say("The tracker is closed today.")])


def remember(callback_context: CallbackContext) -> None:
    callback_context.state["seen"] = True


class TwoSteps(BaseAgent):
    """A custom agent that stores what it says, and no state."""

    saves: ClassVar[bool] = False

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for step in ("Read.", "Filed."):
            if self.saves:
                ctx.set_agent_state(self.name, agent_state=BaseAgentState())
                yield self._create_agent_state_event(ctx)
            content = Content(role="model", parts=[say(step)])
            yield Event(author=self.name, invocation_id=ctx.invocation_id, branch=ctx.branch, content=content)
        if self.saves:
            ctx.set_agent_state(self.name, end_of_agent=True)
            yield self._create_agent_state_event(ctx)


class TwoSavedSteps(TwoSteps):
    """A custom agent that stores its state and its end."""

    saves: ClassVar[bool] = True
    triage_saves_state: ClassVar[bool] = True


class Filed(BaseModel):
    """What the agent with a schema answers."""

    number: int


def reader_and_filer() -> list[BaseAgent]:
    return [agent("reader", READ, READ_TEXT), agent("filer", FILE, BYE)]


def desk(*replies: Reply, sub_agent: BaseAgent) -> LlmAgent:
    return agent("desk", *replies, sub_agents=[sub_agent])


WAITED = LongRunningFunctionTool(ask_editor)
WAITED_SILENTLY = LongRunningFunctionTool(ask_silently)
CONFIRMED = FunctionTool(file_issue, require_confirmation=True)
BARE = Turn()

AGENTS: dict[str, Callable[[], Recording]] = {
    "single": lambda: llm(agent("docs", READ, FILE, BYE)),
    "single_with_schema": lambda: llm(
        agent("docs", FILE, call("set_model_response", number=41), output_schema=Filed)
    ),
    "single_with_state_callbacks": lambda: llm(
        agent("docs", FILE, BYE, before_agent_callback=remember, after_agent_callback=remember)
    ),
    "parallel_calls": lambda: llm(agent("docs", [READ, call("read_page", name="deploy")], FILE, BYE)),
    "sequential": lambda: Recording(
        root=SequentialAgent(name="pipe", sub_agents=reader_and_filer()), kind="sequential"
    ),
    "parallel": lambda: Recording(
        root=ParallelAgent(name="fan", sub_agents=reader_and_filer()), kind="parallel"
    ),
    "parallel_escalation": lambda: Recording(
        root=ParallelAgent(
            name="fan",
            sub_agents=[
                agent("reader", READ, call("exit_loop"), tools=[read_page, exit_loop]),
                agent("indexer", call("index_pages"), tools=[index_pages]),
            ],
        ),
        kind="parallel",
    ),
    "sequential_of_shells": lambda: Recording(
        root=SequentialAgent(
            name="pipe",
            sub_agents=[
                ParallelAgent(name="fan", sub_agents=reader_and_filer()),
                LoopAgent(name="loop", max_iterations=1, sub_agents=[agent("last", READ, say("Checked."))]),
            ],
        ),
        kind="sequential",
    ),
    "sequential_with_transfer": lambda: Recording(
        root=SequentialAgent(
            name="pipe",
            sub_agents=[
                desk(transfer("filer"), sub_agent=agent("filer", FILE, BYE)),
                agent("last", READ, say("Checked.")),
            ],
        ),
        kind="sequential",
    ),
    "loop": lambda: Recording(
        root=LoopAgent(name="loop", max_iterations=2, sub_agents=[agent("docs", READ, READ_TEXT, FILE, BYE)]),
        kind="loop",
    ),
    "loop_exit": lambda: Recording(
        root=LoopAgent(
            name="loop",
            sub_agents=[agent("docs", READ, READ_TEXT, call("exit_loop"), tools=[read_page, exit_loop])],
        ),
        kind="loop",
    ),
    "transfer": lambda: llm(desk(transfer("filer"), sub_agent=agent("filer", FILE, BYE))),
    "transfer_and_back": lambda: llm(
        desk(transfer("filer"), say("All done."), sub_agent=agent("filer", FILE, transfer("desk")))
    ),
    "transfer_between_peers": lambda: llm(
        agent(
            "desk",
            transfer("reader"),
            sub_agents=[agent("reader", READ, transfer("filer")), agent("filer", FILE, BYE)],
        )
    ),
    "transfer_to_sequential": lambda: llm(
        desk(transfer("pipe"), sub_agent=SequentialAgent(name="pipe", sub_agents=reader_and_filer()))
    ),
    "single_turn_sub_agent": lambda: llm(
        desk(
            call("filer", request="File it."),
            say("All done."),
            sub_agent=agent("filer", FILE, BYE, mode="single_turn"),
        )
    ),
    "task_sub_agent": lambda: llm(
        desk(
            call("filer", request="File it."),
            say("All done."),
            sub_agent=agent("filer", FILE, FINISH, mode="task"),
        )
    ),
    "task_sub_agents_in_one_reply": lambda: llm(
        agent(
            "desk",
            [call("reader", request="Read it."), call("filer", request="File it."), READ],
            say("All done."),
            sub_agents=[
                agent("reader", READ, FINISH, mode="task"),
                agent("filer", FILE, FINISH, mode="task"),
            ],
        )
    ),
    "task_sub_agent_twice": lambda: llm(
        desk(
            call("filer", request="File it."),
            call("filer", request="File it again."),
            say("All done."),
            sub_agent=agent("filer", FILE, FINISH, mode="task"),
        )
    ),
    "task_sub_agent_asks": lambda: llm(
        desk(
            call("filer", request="File it."),
            sub_agent=agent("filer", say("Which page?"), mode="task"),
        )
    ),
    "task_root": lambda: llm(agent("docs", FILE, FINISH, mode="task")),
    "before_agent_content": lambda: llm(agent("docs", before_agent_callback=refuse)),
    "workflow_functions": lambda: workflow(outline, polish),
    "workflow_llm_node": lambda: workflow(outline, agent("docs", READ, FILE, BYE), polish),
    "workflow_llm_last": lambda: workflow(outline, agent("docs", FILE, BYE)),
    "workflow_branches": lambda: workflow((agent("docs", FILE, BYE), polish), JoinNode(name="join")),
    "workflow_nested": lambda: workflow(
        outline, Workflow(name="inner", edges=[(START, agent("docs", READ, FILE, BYE))]), polish
    ),
    "workflow_as_tool": lambda: llm(
        agent(
            "desk",
            call("inner", request="Read it."),
            FILE,
            BYE,
            tools=[
                file_issue,
                Workflow(name="inner", description="Read.", edges=[(START, agent("docs", READ, READ_TEXT))]),
            ],
        )
    ),
    "workflow_sequential_node": lambda: workflow(
        outline, SequentialAgent(name="pipe", sub_agents=reader_and_filer()), polish
    ),
    "workflow_parallel_workers": lambda: workflow(
        list_pages, node(agent("docs", READ, READ_TEXT), parallel_worker=True), polish
    ),
    "workflow_task_node": lambda: workflow(outline, agent("docs", FILE, FINISH, mode="task")),
    "workflow_task_node_asks": lambda: workflow(agent("docs", say("Which page?"), mode="task"), polish),
    "workflow_chat_node": lambda: workflow(agent("docs", FILE, BYE, mode="chat"), polish),
    "workflow_request_input": lambda: workflow(
        outline,
        node(ask_which, rerun_on_resume=True),
        polish,
        turns=(BARE, Turn(message=answer("adk_request_input", result="tokens"))),
    ),
    "workflow_function_raises": lambda: workflow(outline, break_down, polish),
    "workflow_llm_blocked": lambda: workflow(agent("docs", FILE, BLOCKED)),
    "custom": lambda: Recording(root=TwoSteps(name="mine"), kind="custom"),
    "custom_saved": lambda: Recording(root=TwoSavedSteps(name="mine"), kind="custom"),
    "long_running_pending": lambda: llm(
        agent("docs", ASK, say("The editor was asked."), tools=[WAITED]),
        BARE,
        Turn(message=answer("ask_editor", approved=True)),
    ),
    "long_running_pending_resumed": lambda: llm(
        agent("docs", ASK, say("The editor was asked."), say("Still waiting."), tools=[WAITED]),
        BARE,
        BARE,
    ),
    "long_running_silent": lambda: llm(
        agent("docs", [ASK_SILENTLY, READ], FILE, BYE, tools=[WAITED_SILENTLY, *BOTH]),
        BARE,
        Turn(message=answer("ask_silently", approved=True)),
    ),
    "long_running_in_sequential_resumed": lambda: Recording(
        root=SequentialAgent(
            name="pipe",
            sub_agents=[
                agent("editor", ASK_SILENTLY, tools=[WAITED_SILENTLY]),
                agent("filer", FILE, BYE),
            ],
        ),
        kind="sequential",
        turns=(BARE, BARE, Turn(message=answer("ask_silently", approved=True))),
    ),
    "confirmation": lambda: llm(
        agent("docs", FILE, BYE, tools=[CONFIRMED]),
        BARE,
        Turn(message=answer("adk_request_confirmation", confirmed=True)),
    ),
    "confirmation_beside_others": lambda: llm(
        agent("docs", [FILE, READ], BYE, tools=[CONFIRMED, read_page]),
        BARE,
        Turn(message=answer("adk_request_confirmation", confirmed=True)),
    ),
    "aborted_in_a_call": lambda: llm(agent("docs", READ, FILE), Turn(stop_after=3, abort=True)),
    "aborted_between_calls": lambda: llm(agent("docs", READ, FILE), Turn(stop_after=2, abort=True)),
    "model_raises": lambda: llm(agent("docs", READ, RuntimeError("the model broke"), FILE, BYE), BARE, BARE),
    "model_blocked": lambda: llm(agent("docs", READ, BLOCKED, FILE, BYE), BARE, BARE),
    "sequential_blocked_first": lambda: Recording(
        root=SequentialAgent(
            name="pipe", sub_agents=[agent("reader", READ, BLOCKED), agent("filer", FILE, BYE)]
        ),
        kind="sequential",
    ),
    "sequential_blocked_last": lambda: Recording(
        root=SequentialAgent(
            name="pipe", sub_agents=[agent("reader", READ, READ_TEXT), agent("filer", FILE, BLOCKED)]
        ),
        kind="sequential",
    ),
    "tool_raises": lambda: llm(
        agent("docs", call("fail", name="tokens"), FILE, BYE, tools=[fail, file_issue]),
        BARE,
        BARE,
        Turn(message=answer("fail", error="The outcome is not known.")),
    ),
    "tool_raises_beside_others": lambda: llm(
        agent("docs", [READ, call("fail", name="tokens")], BYE, tools=[fail, read_page]), BARE, BARE
    ),
    "state_delta_at_resume": lambda: llm(
        agent("docs", READ, FILE, BYE), Turn(stop_after=1), Turn(state_delta={"seen": True})
    ),
}
