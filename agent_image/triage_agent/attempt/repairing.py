"""Bringing calls to an end that ADK passes over at a resume: they run as ADK would have run them.

ADK runs again only what its agent said last (google-adk 2.13.0, ``flows/llm_flows/core/_resume.py``). A call that has
no answer and is followed by anything would be dropped, and the model asked as if it had never called.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.flows.llm_flows.functions import (
    generate_auth_event,
    generate_request_confirmation_event,
    handle_function_calls_async,
)
from google.adk.flows.llm_flows.tools._agent_tools import process_agent_tools
from google.adk.models.llm_request import LlmRequest
from google.adk.platform.time import get_time
from google.adk.runners import Runner
from google.adk.sessions.session import Session
from google.genai import types

from triage_agent.trees import CONTROL_TOOLS, is_control, tools_of, walk
from triage_contract.verdict import Call

OUTCOME_UNKNOWN: Final = {
    "error": "This call was interrupted and its outcome is not known. Do not assume it failed."
}

NOT_DONE: Final = {
    "error": "This call was interrupted before it did anything. Make it again if it is still needed."
}


async def answers(
    runner: Runner, session: Session, invocation_id: str, calls: Iterable[Call]
) -> AsyncIterator[Event]:
    """Run calls without an answer, and give the events to append, in their order.

    Those with a result in the journal are answered from it by the plugins of the runner, which may also end this with
    an error of ours. What only steers the agent is not run, but answered so that the model decides again.
    """
    for event, lost in _by_event(session, calls):
        agent = _agent_of(runner, event)
        own = set() if agent is None else {tool.name for tool in tools_of(agent) if not is_control(tool)}
        steering = [call for call in lost if call.name in CONTROL_TOOLS - own]
        for call in steering:
            yield answer(invocation_id, call, NOT_DONE)
        left = [call for call in lost if call not in steering]
        if agent is None:
            for call in left:
                yield answer(invocation_id, call, OUTCOME_UNKNOWN)
        elif left:
            for made in await _run(_context(runner, session, invocation_id, agent, event), event, left):
                yield made


def answer(invocation_id: str, call: Call, response: Mapping[str, Any]) -> Event:
    """Make the event that answers a call in the user's name, where ADK looks for it: on its branch and scope."""
    part = types.Part(
        function_response=types.FunctionResponse(id=call.id, name=call.name, response=dict(response))
    )
    return _in_the_users_name(invocation_id, call, part, {})


async def _run(context: InvocationContext, event: Event, lost: list[Call]) -> list[Event]:
    request = LlmRequest()
    await process_agent_tools(context, request)
    response = await handle_function_calls_async(
        context, event, request.tools_dict, filters={call.id for call in lost}
    )
    if response is None:
        return []  # They were begun, and their answers come from outside.
    gates = (
        generate_auth_event(context, response),
        generate_request_confirmation_event(context, event, response),
    )
    asked = [gate for gate in gates if gate is not None]
    by_id = {call.id: call for call in lost}
    parts = [part for part in _parts(response) if part.function_response is not None]
    if asked or any(by_id[_id_of(part)].long_running for part in parts):
        # A person answers: this is only what the agent stores beside its question.
        for it in (*asked, response):
            it.isolation_scope = event.isolation_scope
        return [response, *asked]
    deltas = response.actions.model_dump(include={"state_delta", "artifact_delta"})
    made = []
    for part in parts:
        made.append(_in_the_users_name(context.invocation_id, by_id[_id_of(part)], part, deltas))
        deltas = {}  # They were merged: once is enough.
    return made


def _in_the_users_name(invocation_id: str, call: Call, part: types.Part, deltas: Mapping[str, Any]) -> Event:
    event = Event(
        invocation_id=invocation_id,
        author="user",
        content=types.Content(role="user", parts=[part]),
        branch=call.branch or None,
        isolation_scope=call.scope or None,
        timestamp=get_time(),
    )
    event.actions = event.actions.model_copy(update=dict(deltas))
    return event


def _by_event(session: Session, calls: Iterable[Call]) -> list[tuple[Event, list[Call]]]:
    lost: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        lost[call.event_id].append(call)
    return [(event, lost[event.id]) for event in session.events if event.id in lost]


def _agent_of(runner: Runner, event: Event) -> LlmAgent | None:
    root = runner.app.root_agent if runner.app is not None else None
    nodes = () if root is None else (node for node, _ in walk(root))
    return next((it for it in nodes if isinstance(it, LlmAgent) and it.name == event.author), None)


def _context(
    runner: Runner, session: Session, invocation_id: str, agent: LlmAgent, event: Event
) -> InvocationContext:
    """Make the context in which the agent would have run the calls of its event."""
    context = runner._new_invocation_context(
        session,
        invocation_id=invocation_id,
        new_message=runner._find_user_message_for_invocation(session.events, invocation_id),
    )
    context.agent, context.branch, context.isolation_scope = agent, event.branch, event.isolation_scope
    return context


def _parts(event: Event) -> list[types.Part]:
    return (event.content.parts or []) if event.content else []


def _id_of(part: types.Part) -> str:
    return (part.function_response.id or "") if part.function_response else ""
