"""Why a node cannot be resumed safely.

What is refused here was seen to lose calls, to start over or to hang when it was killed and resumed; what is accepted,
to finish from every point (``docs/shapes.md``). Some things cannot be seen in a tree: a ``before_agent_callback`` that
writes state, which makes ADK pass over the call that was killed; nodes that a function of a workflow runs by itself;
the tools of a toolset.
"""

from collections.abc import Mapping
from typing import Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.code_executors.built_in_code_executor import BuiltInCodeExecutor
from google.adk.workflow import BaseNode

from triage_agent.kinds import EFFECT_KEY_ATTRIBUTE, attributed_kind, kind_of_code
from triage_agent.trees import SHELLS, function_of, kind_of_node
from triage_contract.states import ToolKind
from triage_contract.verdict import RootKind
from triage_contract.verdict.doubts import REPEATABLE

SAVES_STATE: Final = "triage_saves_state"
"""Attribute, True, with which the author of a custom agent says that it stores its state and its end marker."""


def refusal(node: BaseNode, parent: BaseNode | None, declared: Mapping[str, ToolKind]) -> str | None:
    """Say why a node cannot be resumed where it is; None: it can. ``parent`` None: it is the root."""
    return _refusal_of_place(node, parent) or _refusal_of_model(node) or _refusal_of_code(node, declared)


def refusal_apart(node: BaseNode, declared: Mapping[str, ToolKind]) -> str | None:
    """Say why a node cannot be run again in a session of its own, from its start; None: it can."""
    return _refusal_of_model(node) or _refusal_of_code(node, declared)


def _refusal_of_place(node: BaseNode, parent: BaseNode | None) -> str | None:
    kind, in_workflow = kind_of_node(node), parent is not None and not isinstance(parent, BaseAgent)
    if kind is RootKind.CUSTOM and getattr(node, SAVES_STATE, None) is not True:
        return (
            f"{type(node).__name__} is a custom agent, of which ADK stores neither state nor end; if it stores both"
            f" itself, it says so with {SAVES_STATE} = True"
        )
    if isinstance(node, LlmAgent):
        if node.mode == "task" and parent is None:
            return "a root in task mode stores no end"
        if node.mode == "task":
            return (
                "ADK hangs when it resumes a run in which a second task has ended; mode='single_turn' works"
            )
        if node.mode == "chat" and in_workflow:
            return "as a node in chat mode it waits for its user after each reply"
    if kind in SHELLS.values():
        if in_workflow:
            return "ADK skips its steps when it resumes it as a node; make its steps nodes of a Workflow"
        if isinstance(parent, LlmAgent):
            return f"ADK loses the calls of its steps when it resumes a transfer from {parent.name!r} to it"
    return None


def _refusal_of_model(node: BaseNode) -> str | None:
    if not isinstance(node, LlmAgent):
        return None
    if getattr(node.model, "use_interactions_api", False) is True:
        return (
            "the Interactions API keeps the conversation and the ids of its calls on the server, where a reply that was"
            " lost here still counts"
        )
    executor = node.code_executor
    if executor is None or isinstance(executor, BuiltInCodeExecutor):
        return None
    name = type(executor).__name__
    if attributed_kind(name, executor) in REPEATABLE:
        return None
    return f"what the model writes for {name} runs outside the journal; let a tool run it"


def _refusal_of_code(node: BaseNode, declared: Mapping[str, ToolKind]) -> str | None:
    code = function_of(node)
    if code is None:
        return None
    if kind_of_code(node, declared) is ToolKind.RECONCILE or hasattr(code, EFFECT_KEY_ATTRIBUTE):
        return "a function as a node runs outside the journal; FunctionTool(function) as a node does not"
    return None
