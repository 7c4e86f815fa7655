"""One tree for each shape that is accepted, by its name in the documentation; ``chaos.shapes:shape_N`` is its app."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from google.adk.agents import LoopAgent, ParallelAgent, SequentialAgent
from google.adk.apps.app import App
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.workflow import START, BaseNode, JoinNode, Workflow, node
from pydantic import BaseModel

from chaos.agents import (
    SavedSteps,
    agent,
    ask_which,
    flow,
    hand_over,
    helper,
    outline,
    pages,
    polish,
    prepare,
    refuse,
    remember,
    worker,
)
from chaos.models import call, say
from chaos.tools import ask, ask_silently, file, index, leave, pay, read


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A tree, built anew by ``build``.

    ``asked_at_once`` models may be asked at the same time: so many replies are lost with a process. ``is_chatty``: what
    it says beside its end depends on when a process dies: while it waits, or in a branch that is cancelled.
    """

    build: Callable[[], BaseNode]
    asked_at_once: int = 1
    is_chatty: bool = False


class Filed(BaseModel):
    """What an agent with a schema answers."""

    number: int


DONE: Final = say("It is done.")
CONFIRMED: Final = FunctionTool(pay, require_confirmation=True)


def _branches() -> ParallelAgent:
    return ParallelAgent(name="fan", sub_agents=[worker("left"), worker("right")])


def _confirming(name: str, **fields: object) -> BaseNode:
    return agent(name, call("pay", whom=name), say(f"{name} is done."), tools=[CONFIRMED], **fields)


SHAPES: Final[Mapping[str, Shape]] = {
    "one LlmAgent": Shape(
        build=lambda: agent(
            "docs",
            call("read", page="tokens"),
            call("file", title="a"),
            call("pay", whom="b"),
            call("post", text="c"),
            DONE,
        )
    ),
    "one LlmAgent, parallel calls": Shape(
        build=lambda: agent(
            "docs",
            [call("pay", whom="a"), call("post", text="b"), call("file", title="c"), call("read", page="d")],
            DONE,
        )
    ),
    "one LlmAgent with an `output_schema`": Shape(
        build=lambda: agent(
            "docs", call("pay", whom="a"), call("set_model_response", number="41"), output_schema=Filed
        )
    ),
    "one LlmAgent whose callbacks write state": Shape(
        build=lambda: worker("docs", before_agent_callback=remember, after_agent_callback=remember)
    ),
    "`before_agent_callback` that returns content": Shape(
        build=lambda: agent("docs", before_agent_callback=refuse)
    ),
    "SequentialAgent": Shape(
        build=lambda: SequentialAgent(name="pipe", sub_agents=[worker("first"), worker("second")])
    ),
    "ParallelAgent": Shape(build=_branches, asked_at_once=2),
    "ParallelAgent that a branch escalates out of": Shape(
        build=lambda: ParallelAgent(
            name="fan",
            sub_agents=[
                agent("left", call("pay", whom="a"), call("exit_loop"), tools=[pay, exit_loop]),
                agent("right", call("index"), say("right is done."), tools=[index]),
            ],
        ),
        asked_at_once=2,
        is_chatty=True,
    ),
    "LoopAgent": Shape(build=lambda: LoopAgent(name="loop", max_iterations=2, sub_agents=[worker("round")])),
    "LoopAgent that ends by `exit_loop`": Shape(
        build=lambda: LoopAgent(
            name="loop",
            sub_agents=[agent("docs", call("pay", whom="a"), call("exit_loop"), tools=[pay, exit_loop])],
        )
    ),
    "LoopAgent that ends by a tool of its own": Shape(
        build=lambda: LoopAgent(
            name="loop",
            max_iterations=3,
            sub_agents=[agent("docs", call("pay", whom="a"), call("leave"), DONE, tools=[pay, leave])],
        )
    ),
    "Sequential, Parallel and Loop inside each other": Shape(
        build=lambda: SequentialAgent(
            name="pipe",
            sub_agents=[
                _branches(),
                LoopAgent(name="loop", max_iterations=1, sub_agents=[worker("last")]),
            ],
        ),
        asked_at_once=2,
    ),
    "a step of a SequentialAgent that transfers": Shape(
        build=lambda: SequentialAgent(
            name="pipe",
            sub_agents=[agent("desk", hand_over("filer"), sub_agents=[worker("filer")]), worker("last")],
        )
    ),
    "transfer to a sub-agent": Shape(
        build=lambda: agent("desk", hand_over("filer"), sub_agents=[worker("filer")])
    ),
    "transfer there and back": Shape(
        build=lambda: agent(
            "desk",
            hand_over("filer"),
            DONE,
            sub_agents=[agent("filer", call("pay", whom="a"), hand_over("desk"))],
        )
    ),
    "transfer between peers": Shape(
        build=lambda: agent(
            "desk",
            hand_over("reader"),
            sub_agents=[agent("reader", call("pay", whom="a"), hand_over("filer")), worker("filer")],
        )
    ),
    "sub-agent in mode `single_turn`": Shape(
        build=lambda: agent(
            "desk",
            call("filer", request="File it."),
            DONE,
            sub_agents=[worker("filer", mode="single_turn")],
        )
    ),
    "AgentTool": Shape(
        build=lambda: agent(
            "desk",
            call("helper", request="Do it."),
            call("pay", whom="b"),
            DONE,
            tools=[pay, helper("helper")],
        )
    ),
    "AgentTool of a SequentialAgent": Shape(
        build=lambda: agent(
            "desk",
            call("pipe", request="Do it."),
            DONE,
            tools=[
                AgentTool(
                    SequentialAgent(
                        name="pipe", description="Works.", sub_agents=[worker("first"), worker("second")]
                    )
                )
            ],
        )
    ),
    "AgentTool inside an AgentTool, two calls at once": Shape(
        build=lambda: agent(
            "docs",
            [call("desk", request="One."), call("desk", request="Two.")],
            DONE,
            tools=[
                AgentTool(
                    agent(
                        "desk",
                        call("helper", request="Do it."),
                        DONE,
                        tools=[helper("helper")],
                        description="Asks.",
                    )
                )
            ],
        ),
        asked_at_once=2,
    ),
    "Workflow of functions": Shape(build=lambda: flow(outline, polish)),
    "Workflow with a tool as a node": Shape(build=lambda: flow(prepare, FunctionTool(pay))),
    "Workflow with an LLM node": Shape(build=lambda: flow(outline, worker("docs"), polish)),
    "Workflow that ends with an LLM node": Shape(build=lambda: flow(outline, worker("docs"))),
    "Workflow with branches and a join": Shape(
        build=lambda: flow((worker("left"), worker("right")), JoinNode(name="join")), asked_at_once=2
    ),
    "Workflow inside a Workflow": Shape(
        build=lambda: flow(outline, Workflow(name="inner", edges=[(START, worker("docs"))]), polish)
    ),
    "Workflow with parallel workers": Shape(
        build=lambda: flow(
            pages,
            node(agent("docs", call("read", page="a"), say("It is read.")), parallel_worker=True),
            polish,
        ),
        asked_at_once=2,
    ),
    "Workflow as a tool": Shape(
        build=lambda: agent(
            "desk",
            call("inner", request="Do it."),
            call("file", title="b"),
            DONE,
            tools=[
                file,
                Workflow(name="inner", description="Works.", edges=[(START, worker("docs"))]),
            ],
        )
    ),
    "AgentTool inside an LLM node": Shape(
        build=lambda: flow(agent("docs", call("helper", request="Do it."), DONE, tools=[helper("helper")]))
    ),
    "custom agent with `triage_saves_state = True`": Shape(build=lambda: SavedSteps(name="mine")),
    "long-running tool, pending result": Shape(
        build=lambda: agent("docs", call("ask", whom="a"), DONE, tools=[LongRunningFunctionTool(ask), pay]),
        is_chatty=True,
    ),
    "long-running tool that returns None": Shape(
        build=lambda: agent(
            "docs",
            call("ask_silently", whom="a"),
            call("pay", whom="b"),
            DONE,
            tools=[LongRunningFunctionTool(ask_silently), pay],
        )
    ),
    "long-running tool in a step of a SequentialAgent": Shape(
        build=lambda: SequentialAgent(
            name="pipe",
            sub_agents=[
                agent(
                    "editor",
                    call("ask_silently", whom="a"),
                    say("The editor is done."),
                    tools=[LongRunningFunctionTool(ask_silently)],
                ),
                worker("filer"),
            ],
        )
    ),
    "`require_confirmation`": Shape(build=lambda: _confirming("docs")),
    "`require_confirmation` beside other calls": Shape(
        build=lambda: agent(
            "docs",
            [call("pay", whom="a"), call("read", page="b")],
            DONE,
            tools=[CONFIRMED, read],
        )
    ),
    "`require_confirmation` in a step of a SequentialAgent": Shape(
        build=lambda: SequentialAgent(name="pipe", sub_agents=[_confirming("first"), worker("second")])
    ),
    "`require_confirmation` in a sub-agent in mode `single_turn`": Shape(
        build=lambda: agent(
            "desk",
            call("filer", request="File it."),
            DONE,
            sub_agents=[_confirming("filer", mode="single_turn")],
        )
    ),
    "`require_confirmation` in an LLM node": Shape(build=lambda: flow(_confirming("docs"))),
    "RequestInput in a Workflow": Shape(
        build=lambda: flow(outline, node(ask_which, rerun_on_resume=True), polish)
    ),
    "`require_confirmation` of a tool as a node": Shape(build=lambda: flow(prepare, CONFIRMED)),
}

NAMES: Final = {name: f"shape_{at}" for at, name in enumerate(SHAPES)}
"""By shape, the attribute of this module that is its app."""


def __getattr__(name: str) -> App:
    """Build an app when somebody asks for it."""
    for shape, attribute in NAMES.items():
        if attribute == name:
            return App(name="chaos", root_agent=SHAPES[shape].build())
    raise AttributeError(name)
