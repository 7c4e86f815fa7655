"""Orders: last words, and answers of tools, that end or halt an agent's turn, and that a process died before it obeyed.

A transfer, the end of a loop, a structured answer, an answer that needs no words and the need of a confirmation stand
in the stored answer of a call; ADK acts on them when the tool returns, and at a resume asks the model for more instead
(google-adk 2.13.0, ``flows/llm_flows/core/_function_call_postprocessor.py``).
"""

from collections.abc import Iterator

from google.adk.events.event import Event
from google.adk.flows.llm_flows.prompt._schema import get_structured_model_response
from google.adk.sessions.session import Session

from triage_agent.replay.dangling import call_event


def last_of(session: Session, invocation_id: str, agent: str, branch: str | None) -> Event | None:
    """Give the last event in an agent's view but its end marker, where it is the agent's own; None: it is not."""
    for event in _in_view(session, invocation_id, branch or ""):
        if event.author != agent:
            return None
        if not event.actions.end_of_agent:
            return event
    return None


def is_last_word(event: Event) -> bool:
    """Whether an agent ends its turn with what an event says."""
    return (
        bool(event.content and event.content.parts)
        and event.is_final_response()
        and not event.get_function_responses()
        and not event.long_running_tool_ids
    )


def disobeyed_calls(session: Session, invocation_id: str, answer: Event) -> Event | None:
    """Give the event with the calls whose answer ends or halts a turn; None: it does not, so the agent goes on.

    Args:
        session: the session that holds the answer.
        invocation_id: the invocation that it belongs to.
        answer: what ``last_of`` gives of an agent that is about to ask its model, with answers to calls in it.
    """
    actions = answer.actions
    ends = (
        actions.transfer_to_agent
        or actions.skip_summarization
        or actions.requested_tool_confirmations
        or actions.requested_auth_configs
        or get_structured_model_response(answer)
    )
    answered = {response.id for response in answer.get_function_responses()}
    if not answered or not ends or None in answered:
        return None
    calls = call_event(session, invocation_id, str(min(map(str, answered))))
    if calls is None or {call.id for call in calls.get_function_calls()} != answered:
        return None
    return calls


def _in_view(session: Session, invocation_id: str, branch: str) -> Iterator[Event]:
    """Give an invocation's events on a branch and on those that it is part of, the last first."""
    for event in reversed(session.events):
        if event.invocation_id == invocation_id and f"{branch}.".startswith(
            f"{event.branch}." if event.branch else ""
        ):
            yield event
