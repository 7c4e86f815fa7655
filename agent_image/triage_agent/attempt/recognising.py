"""Whether an agent tree is the one that an invocation was begun with, as far as a resume depends on it.

ADK finds an agent's calls and state by its name. Without it (google-adk 2.13.0) a call is dropped, a step passed over,
or the resume breaks off, and the run would end without what it was for. Other instructions and more tools do no harm.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.adk.events.event import Event
from google.adk.sessions.session import Session
from google.adk.workflow import BaseNode

from triage_agent.exceptions import ConfigurationError
from triage_agent.trees import SHELLS, kind_of_node, walk
from triage_contract.verdict import Root, RootKind

_NAMED: Final = frozenset({RootKind.LLM, *SHELLS.values()})
"""Roots whose nodes are all known: a workflow's function may run others by itself, and a custom agent anything."""


def recognise_root(recorded: Mapping[str, Any] | None, root: Root) -> None:
    """See that a tree has the root that the run's row records; None: no attempt came as far as that.

    Raises:
        ConfigurationError: it has another one.
    """
    if recorded is None:
        return
    known = Root.from_record(recorded)
    if known != root:
        raise ConfigurationError(
            f"the run began with {known.name!r} ({known.kind}) as its root, and now that is {root.name!r} ({root.kind})"
        )


def recognise_agents(root: BaseNode, session: Session, invocation_id: str) -> None:
    """See that the tree still has each agent whose state or calls an invocation goes on with.

    Raises:
        ConfigurationError: it lacks one.
    """
    if kind_of_node(root) not in _NAMED:
        return
    names = {node.name for node, _ in walk(root)}
    for event in _needed(session, invocation_id):
        if event.author not in names:
            raise ConfigurationError(
                f"agent {event.author!r} was at work when the run was lost, and is not among the agents any more"
            )


def _needed(session: Session, invocation_id: str) -> Iterator[Event]:
    events = [event for event in session.events if event.invocation_id == invocation_id]
    answered = {response.id for event in events for response in event.get_function_responses()}
    for event in events:
        calls = {call.id for call in event.get_function_calls()}
        if event.author != "user" and (calls - answered or event.actions.agent_state is not None):
            yield event
