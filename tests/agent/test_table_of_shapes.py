"""The table of shapes: what is accepted, what is refused, and that what is accepted holds after a kill anywhere.

``docs/shapes.md`` shows the same table. Each accepted shape is run by attempts that die after everything that they do
for the first time, so that each stored event, journaled reply or call, and effect is once the last thing that a
process did. Its tools are those whose other side keeps a call's key, or change nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.apps.app import App
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from google.adk.events.event import Event
from google.adk.models.google_llm import Gemini
from google.adk.platform.time import get_time
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content

from support.databases import a_run
from support.dying import Mortal, mortal
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
from support.stage import Stage, stage
from triage_agent.attempt.running import open_session
from triage_agent.exceptions import ShapeRefusedError
from triage_agent.replay.sessions import FencedSessionService
from triage_agent.shapes import inspect_shape
from triage_contract.database.engine import open_engine
from triage_contract.names import REPLAYED_METADATA
from triage_contract.states import InDoubt, Outcome, ToolKind

__all__ = ["mortal", "stage"]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

PAGE = Path(__file__).parents[2] / "docs" / "shapes.md"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of a run: effects by tool, how many replies, what its agents said and called, and what last."""

    effects: Counter[str]
    replies: int
    said: Counter[str]
    said_again: Counter[str]
    last: str | None


async def told(mortal: Mortal, shape: Shape) -> Told:
    """Carry out a run of a shape, with its answers from outside, to its end."""
    stage = mortal.stage
    stage.run, stage.last = a_run(), None
    stage.in_doubt, stage.tools = InDoubt.PARK, KINDS
    mortal.effects.clear()
    mortal.deeds.clear()
    turns = shape.recording().turns
    ending = await mortal.live(lambda: App(name="golden", root_agent=shape.recording().root))
    for turn in turns[1:]:
        assert ending.outcome is Outcome.WAITING, ending.message
        message = turn.message(await stored(stage))
        assert message is not None
        await append(stage, message)
        ending = await mortal.live(lambda: App(name="golden", root_agent=shape.recording().root))
    assert ending.outcome is Outcome.FINISHED, ending.message
    # The runs of a test have a database together.
    await stage.database.values("UPDATE triage.runs SET state = 'succeeded'")
    said: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    last: str | None = None
    for event in await stored(stage):
        if event.author != "user" and event.content is not None:
            last = next(reversed(gist(event.content)), last)
            is_again = REPLAYED_METADATA in (event.custom_metadata or {})
            said[is_again].update(gist(event.content))
    ((replies,),) = await stage.database.values(
        "SELECT count(*)::int FROM triage.model_replies WHERE session_id = :session_id",
        session_id=stage.run.session.session_id,
    )
    assert isinstance(replies, int)
    return Told(
        effects=Counter(name for name, _ in mortal.effects),
        replies=replies,
        said=said[False],
        said_again=said[True],
        last=last,
    )


def gist(content: Content) -> list[str]:
    """The texts and calls of a content."""
    named = [part.text or (part.function_call and part.function_call.name) for part in content.parts or []]
    return [name for name in named if name]


async def stored(stage: Stage) -> Sequence[Event]:
    rows = await stage.database.values(
        "SELECT event_data FROM events WHERE session_id = :session_id ORDER BY timestamp, id",
        session_id=stage.run.session.session_id,
    )
    return [Event.model_validate(row[0]) for row in rows]


async def append(stage: Stage, content: Content) -> None:
    """Append a person's answer, as one does that holds the fence."""
    attempt = stage.last = await stage.database.open(stage.run, observed_epoch=stage.epoch)
    engine = open_engine(stage.database.url, application="answering", token=attempt.token)
    service = FencedSessionService(engine, stage.database.url)
    session = await open_session(service, stage.run.session)
    event = Event(invocation_id=stage.run.invocation_id, author="user", content=content, timestamp=get_time())
    await service.append_event(session, event)
    await engine.dispose()
    await stage.database.close(stage.run, attempt.epoch)


@pytest.mark.parametrize("shape", ACCEPTED, ids=lambda shape: shape.title)
async def test_after_a_death_at_each_step_everything_is_done_once(shape: Shape, mortal: Mortal) -> None:
    mortal.deadly = lambda _: False
    undisturbed = await told(mortal, shape)
    assert mortal.deaths == 0
    mortal.deadly = lambda _: True
    after = await told(mortal, shape)
    assert mortal.deaths > 1
    assert after.effects == undisturbed.effects
    assert after.last == undisturbed.last
    # The last reply inside a tool may die with its process once the tool has its result.
    assert after.replies <= undisturbed.replies - shape.unsaid
    said = after.said + after.said_again
    if shape.resume == GOES_ON:
        assert said.total() == undisturbed.said.total() - shape.unsaid
    assert set(said) == set(undisturbed.said)
    assert after.said <= undisturbed.said or shape.resume == AS_WRITTEN


@pytest.mark.parametrize("title", FILING)
async def test_an_undeclared_effect_that_nobody_knows_of_is_named(title: str, mortal: Mortal) -> None:
    (shape,) = (it for it in ACCEPTED if it.title == title)
    stage = mortal.stage
    stage.in_doubt, stage.tools = InDoubt.PARK, {**KINDS, "file_issue": ToolKind.UNDECLARED}
    mortal.deadly = lambda deed: deed[:2] == ("effect", "file_issue")
    ending = await mortal.live(lambda: App(name="golden", root_agent=shape.recording().root))
    assert ending.outcome is Outcome.IN_DOUBT
    assert ending.message == "Begun, and not known to have happened: file_issue."
    assert set(mortal.effects.values()) == {1}


@pytest.mark.parametrize("shape", REFUSALS, ids=lambda shape: shape.title)
def test_what_cannot_hold_is_refused(shape: Shape) -> None:
    assert reason(shape)


def reason(shape: Shape) -> str:
    with pytest.raises(ShapeRefusedError) as refused:
        inspect_shape(App(name="golden", root_agent=shape.recording().root), {})
    return str(refused.value).partition("resumed safely: ")[2]


def test_the_page_shows_this_table() -> None:
    table = [f"| {it.title} | {it.resume} | {it.note} |" for it in ACCEPTED]
    table += [f"| {it.title} | {it.resume} | {reason(it)} |" for it in REFUSALS]
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [line for line in shown if line != "| Shape | Resume | Note |"] == table
