"""Which agent trees are refused and why, what a fingerprint tells apart, and switching resumability on."""

from typing import Any

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.workflow import START, BaseNode, Workflow

from support.golden_agents import AGENTS, READ, file_issue, read_page
from support.golden_agents import agent as scripted
from triage_agent.exceptions import ShapeRefusedError
from triage_agent.shapes import Shape, inspect_shape, resumable
from triage_contract.states import ToolKind
from triage_contract.verdict import Root, RootKind

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

REFUSED = {
    "custom": "custom agent",
    "task_root": "root in task mode",
    "task_sub_agent": "second task",
    "task_sub_agent_asks": "second task",
    "task_sub_agent_twice": "second task",
    "task_sub_agents_in_one_reply": "second task",
    "transfer_to_sequential": "transfer from 'desk'",
    "workflow_chat_node": "waits for its user",
    "workflow_sequential_node": "skips its steps",
    "workflow_task_node": "second task",
    "workflow_task_node_asks": "second task",
}


def agent(name: str = "docs", **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, model="gemini-3.8-flash", **fields)


def inspected(root: BaseNode, **declared: ToolKind) -> Shape:
    return inspect_shape(App(name="golden", root_agent=root), declared)


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_recorded_trees(name: str) -> None:
    recording = AGENTS[name]()
    if name in REFUSED:
        with pytest.raises(ShapeRefusedError, match=REFUSED[name]):
            inspected(recording.root)
    else:
        assert inspected(recording.root).root == Root(name=recording.root.name, kind=RootKind(recording.kind))


def test_refusal_is_one_line_that_names_the_agent() -> None:
    with pytest.raises(ShapeRefusedError) as refused:
        inspected(AGENTS["transfer_to_sequential"]().root)
    assert str(refused.value) == (
        "agent 'pipe' cannot be resumed safely: ADK loses the calls of its steps when it resumes a transfer"
        " from 'desk' to it"
    )


def test_bare_node_is_no_root() -> None:
    with pytest.raises(ShapeRefusedError, match="not a bare node"):
        inspected(Workflow(name="flow", edges=[(START, read_page)]).graph.nodes[-1])  # type: ignore[union-attr]


def test_agent_class_that_runs_in_a_way_of_its_own_is_custom() -> None:
    class Retrying(LlmAgent):
        async def _run_async_impl(self, ctx: Any) -> Any:
            async for event in super()._run_async_impl(ctx):
                yield event

    class Renamed(LlmAgent):
        pass

    with pytest.raises(ShapeRefusedError, match="Retrying is a custom agent"):
        inspected(Retrying(name="docs", model="gemini-3.8-flash"))
    assert inspected(Renamed(name="docs", model="gemini-3.8-flash")).root.kind is RootKind.LLM


def test_custom_agent_may_declare_that_it_saves_its_state() -> None:
    class Saving(BaseAgent):
        triage_saves_state: bool = True

    assert inspected(Saving(name="mine")).root == Root(name="mine", kind=RootKind.CUSTOM)


def test_effect_inside_an_agent_tool_is_refused_unless_declared_read_only() -> None:
    root = agent(tools=[AgentTool(agent("searcher", tools=[read_page]))])
    with pytest.raises(ShapeRefusedError, match="'read_page' inside the AgentTool 'searcher'"):
        inspected(root)
    assert inspected(root, read_page=ToolKind.READ_ONLY).root.name == "docs"


def test_agent_tool_without_tools_is_accepted() -> None:
    assert inspected(agent(tools=[AgentTool(agent("summariser"))])).root.name == "docs"


def test_toolset_inside_an_agent_tool_cannot_be_seen_into() -> None:
    class Tracker(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[Any]:
            return []

    with pytest.raises(ShapeRefusedError, match="'Tracker' inside the AgentTool 'searcher'"):
        inspected(agent(tools=[AgentTool(agent("searcher", tools=[Tracker()]))]))


def test_tool_as_a_node_is_refused_unless_declared_read_only() -> None:
    flow = Workflow(name="flow", edges=[(START, FunctionTool(file_issue))])
    with pytest.raises(ShapeRefusedError, match="'file_issue' as a node"):
        inspected(flow)
    assert inspected(flow, file_issue=ToolKind.READ_ONLY).root.kind is RootKind.WORKFLOW


def test_fingerprint_is_that_of_names_types_tools_and_order() -> None:
    def tree(*names: str, tools: list[Any]) -> str:
        subs = [agent(name, tools=list(tools)) for name in names]
        return inspected(agent("desk", sub_agents=subs)).fingerprint

    same = tree("a", "b", tools=[read_page])
    assert same == tree("a", "b", tools=[read_page])
    others = [
        tree("b", "a", tools=[read_page]),
        tree("a", "c", tools=[read_page]),
        tree("a", "b", tools=[read_page, file_issue]),
        tree("a", "b", tools=[file_issue]),
        inspected(AGENTS["workflow_functions"]().root).fingerprint,
        inspected(AGENTS["workflow_nested"]().root).fingerprint,
    ]
    assert len({same, *others}) == len(others) + 1


def test_instruction_and_model_are_no_part_of_the_fingerprint() -> None:
    one = inspected(scripted("docs", READ, instruction="Read.")).fingerprint
    assert one == inspected(scripted("docs", READ, instruction="Read carefully.")).fingerprint


def test_record_of_a_shape_reads_back_as_its_root() -> None:
    shape = inspected(agent())
    assert Root.from_record(shape.to_json()) == shape.root
    assert set(shape.to_json()) == {"name", "kind", "fingerprint"}


def test_app_is_made_resumable_without_touching_it() -> None:
    app = App(name="golden", root_agent=agent())
    copy = resumable(app)
    assert copy.resumability_config == ResumabilityConfig(is_resumable=True)
    assert copy.root_agent is app.root_agent
    assert app.resumability_config is None
    assert resumable(copy) is copy


def test_app_that_switched_resumability_off_is_made_resumable() -> None:
    app = App(name="golden", root_agent=agent(), resumability_config=ResumabilityConfig(is_resumable=False))
    copy = resumable(app)
    assert copy.resumability_config is not None
    assert copy.resumability_config.is_resumable


@pytest.mark.filterwarnings("error")
def test_switching_resumability_on_warns_of_nothing() -> None:
    resumable(App(name="golden", root_agent=agent()))
