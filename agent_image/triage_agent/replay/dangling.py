"""Calls without an answer, and the events that must not be stored behind one.

A call that is not the last thing that its agent said is never run again by ADK: neither an error, nor a change of
state, nor the answers of other calls of the same reply may come between it and its own answer
(google-adk 2.13.0, ``flows/llm_flows/core/_resume.py``).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.session import Session

from triage_agent.replay.replies import is_our_call_id


def call_event(session: Session, invocation_id: str, call_id: str) -> Event | None:
    """Find the last event of an invocation that holds a call of this id."""
    for event in reversed(session.events):
        if event.invocation_id == invocation_id and call_id in _ids(event):
            return event
    return None


def call_key(call_id: str, event: Event) -> str:
    """Give the key under which a call of an event is journaled."""
    # A session from before us may hold several calls of one id.
    return call_id if is_our_call_id(call_id) else f"{call_id}@{event.id}"


def answer_from_outside(session: Session, invocation_id: str, call_id: str) -> Mapping[str, Any] | None:
    """Give what a call was answered in the user's name; None: it was not.

    A node that starts over makes its calls again, answered ones too. ADK does not look.
    """
    for event in reversed(session.events):
        if event.invocation_id != invocation_id:
            continue
        if call_id in _ids(event) and not is_our_call_id(call_id):
            return None  # What comes before answers another call of this id.
        if event.author == "user":
            for response in event.get_function_responses():
                if response.id == call_id:
                    return response.response or {}
    return None


def is_behind_a_call(
    event: Event, session: Session, invocation_id: str, begun: Collection[str | None]
) -> bool:
    """Whether an event would hide a call without an answer from a resume.

    ``begun`` are the ids of the calls under way in this process.
    """
    if event.partial or event.author == "user":
        return False
    answered = {response.id for response in event.get_function_responses() if response.id}
    if answered:
        calls = next((it for id_ in answered if (it := call_event(session, invocation_id, id_))), None)
        return calls is not None and any(id_ in begun for id_ in _ids(calls) - answered)
    if event.content is not None or event.output is not None:
        return False
    if event.error_code is not None:
        return any(True for _ in _dangling(session, invocation_id))
    if event.actions.end_of_agent or event.actions.agent_state is not None:
        return False
    return any(
        it.author == event.author and it.branch == event.branch for it in _dangling(session, invocation_id)
    )


def _dangling(session: Session, invocation_id: str) -> Iterator[Event]:
    """Give the events of an invocation that hold a call without an answer which none from outside is to give."""
    answered: set[str] = set()
    for event in reversed(session.events):
        if event.invocation_id == invocation_id:
            if _ids(event) - answered - (event.long_running_tool_ids or set()):
                yield event
            answered |= {response.id for response in event.get_function_responses() if response.id}


def _ids(event: Event) -> set[str]:
    return {call.id for call in event.get_function_calls() if call.id}
