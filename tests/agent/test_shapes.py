"""Which agent trees are refused and why, what a fingerprint tells apart, and switching resumability on."""

from collections.abc import AsyncGenerator
from typing import Any, ClassVar

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.code_executors.built_in_code_executor import BuiltInCodeExecutor
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from google.adk.models.google_llm import Gemini
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.exit_loop_tool import exit_loop
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.google_search_tool import google_search
from google.adk.workflow import START, BaseNode, JoinNode, Workflow

from support.golden_agents import AGENTS, READ, file_issue, outline, read_page
from support.golden_agents import agent as scripted
from triage_agent.exceptions import ShapeRefusedError
from triage_agent.kinds import effect, read_only
from triage_agent.shapes import Shape, inspect_shape, resumable
from triage_contract.states import ToolKind
from triage_contract.tools import undeclared_tools
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


def test_effects_inside_an_agent_tool_are_its_own_tools() -> None:
    inner = agent("searcher", tools=[read_page, FunctionTool(file_issue)])
    shape = inspected(agent(tools=[AgentTool(inner)]), read_page=ToolKind.READ_ONLY)
    assert shape.tools == {
        "searcher": ToolKind.IDEMPOTENT,
        "read_page": ToolKind.READ_ONLY,
        "file_issue": ToolKind.UNDECLARED,
    }


def test_a_tree_that_is_refused_elsewhere_may_run_as_a_tool() -> None:
    """In a session of its own nothing is resumed: it runs again, and hears and does nothing twice."""
    inner = AGENTS["transfer_to_sequential"]().root
    assert isinstance(inner, BaseAgent)
    assert inspected(agent(tools=[AgentTool(inner)])).root.name == "docs"


def test_the_interactions_api_is_refused_wherever_it_is_used() -> None:
    asking = LlmAgent(name="asking", model=Gemini(model="gemini-3.8-flash", use_interactions_api=True))
    for root in (asking, agent(sub_agents=[asking]), agent(tools=[AgentTool(asking)])):
        with pytest.raises(ShapeRefusedError, match=r"'asking' cannot be .* ids of its calls on the server"):
            inspected(root)


def test_code_that_a_model_writes_is_refused_unless_the_model_runs_it_or_it_may_run_again() -> None:
    with pytest.raises(ShapeRefusedError, match="UnsafeLocalCodeExecutor runs outside the journal"):
        inspected(agent(code_executor=UnsafeLocalCodeExecutor()))

    class Calculating(UnsafeLocalCodeExecutor):
        triage_kind: ClassVar[str] = "ReadOnly"

    assert inspected(agent(code_executor=Calculating())).root.name == "docs"
    assert inspected(agent(code_executor=BuiltInCodeExecutor())).root.name == "docs"


def test_function_that_is_a_node_is_listed_until_it_is_declared() -> None:
    def flow() -> Workflow:
        return Workflow(name="flow", edges=[(START, outline, FunctionTool(file_issue))])

    assert inspected(flow()).tools == {"outline": ToolKind.UNDECLARED, "file_issue": ToolKind.UNDECLARED}
    assert inspected(flow(), outline=ToolKind.READ_ONLY).tools["outline"] is ToolKind.READ_ONLY


def test_node_of_a_class_of_its_own_is_listed_too() -> None:
    class Publishing(BaseNode):
        async def _run_impl(self, *, ctx: Any, node_input: Any) -> AsyncGenerator[Any, None]:
            yield node_input

    flow = Workflow(name="flow", edges=[(START, Publishing(name="publishing"), JoinNode(name="join"))])
    assert inspected(flow).tools == {"publishing": ToolKind.UNDECLARED}


def test_function_that_is_a_node_cannot_be_promised_more_than_to_run_again() -> None:
    @effect(key="one")
    def publish(node_input: str) -> str:
        return node_input

    with pytest.raises(ShapeRefusedError, match=r"'publish' cannot .* FunctionTool"):
        inspected(Workflow(name="flow", edges=[(START, publish)]))
    with pytest.raises(ShapeRefusedError, match=r"'outline' cannot .* FunctionTool"):
        inspected(Workflow(name="flow", edges=[(START, outline)]), outline=ToolKind.RECONCILE)


def test_tools_that_do_nothing_by_themselves_are_not_listed() -> None:
    assert inspected(agent(tools=[google_search, exit_loop])).tools == {}


def test_of_two_tools_of_one_name_the_less_declared_is_listed() -> None:
    @read_only
    def namesake(name: str) -> str:
        return name

    namesake.__name__ = "read_page"
    for first, second in ((read_page, namesake), (namesake, read_page)):
        tree = agent("desk", tools=[first], sub_agents=[agent("sub", tools=[second])])
        assert inspected(tree).tools == {"read_page": ToolKind.UNDECLARED}


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
    assert set(shape.to_json()) == {"name", "kind", "fingerprint", "tools"}


def test_record_of_a_shape_tells_which_tools_nobody_declared() -> None:
    shape = inspected(agent(tools=[file_issue, read_page]), read_page=ToolKind.READ_ONLY)
    assert undeclared_tools(shape.to_json()) == ("file_issue",)
    assert (
        undeclared_tools({"name": "docs", "kind": "llm", "fingerprint": "0"}) == undeclared_tools(None) == ()
    )


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
