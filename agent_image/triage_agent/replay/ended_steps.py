"""The ADK plugin behind which a step that is over is not run again.

At a resume a SequentialAgent, ParallelAgent or LoopAgent runs the step that it was at once more, also where that had
said its last word or stored its end (google-adk 2.13.0, ``agents/sequential_agent.py``): a second answer.
"""

from collections.abc import Iterator

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from typing_extensions import override

from triage_agent.replay.orders import is_last_word


class EndedStepsPlugin(BasePlugin):
    """Lets ADK pass over an agent that is over, and stores nothing of that but an end that is missing."""

    def __init__(self) -> None:
        super().__init__(name="triage_ended_steps")
        self._passed_over: dict[int, EventActions] = {}

    @override
    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: CallbackContext
    ) -> types.Content | None:
        if not _has_ended(agent, callback_context._invocation_context):
            return None
        self._pass_over(agent, callback_context)
        return types.Content(role="model")

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        agent = callback_context._invocation_context.agent
        if not isinstance(agent, BaseAgent):
            return None
        said = _last_words(agent, callback_context._invocation_context)
        if said is None:
            return None
        self._pass_over(agent, callback_context)
        return LlmResponse(content=said)

    @override
    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if id(event.actions) not in self._passed_over:
            return None
        return event.model_copy(update={"partial": True})  # which ADK does not store

    def _pass_over(self, agent: BaseAgent, context: CallbackContext) -> None:
        # The loop around it was to end, and does not know it any more.
        if any(event.actions.escalate for event in _events_of_step(agent, context._invocation_context)):
            context.actions.escalate = True
        self._passed_over[id(context.actions)] = context.actions


def _has_ended(agent: BaseAgent, invocation: InvocationContext) -> bool:
    """Whether the end of a shell's own step is stored."""
    if agent.parent_agent is None or agent.parent_agent.name not in _shells(agent):
        return False
    return any(
        event.author == agent.name and event.actions.end_of_agent
        for event in _events_of_step(agent, invocation)
    )


def _last_words(agent: BaseAgent, invocation: InvocationContext) -> types.Content | None:
    """Give what an agent, at work in a shell, said last, if that was its last word; None: it goes on."""
    steps = _events_of_step(agent, invocation)
    said = (event for event in steps if event.branch == invocation.branch and event.content is not None)
    last = next(said, None)
    if last is None or last.author != agent.name or not is_last_word(last):
        return None
    return last.content


def _events_of_step(agent: BaseAgent, invocation: InvocationContext) -> Iterator[Event]:
    """Give the events on an agent's branch, and on those within it, since its shell began its step, the last first."""
    shells = _shells(agent)
    for event in reversed(invocation.session.events if shells else ()):
        if event.invocation_id != invocation.invocation_id:
            continue
        # A shell stores its state before each step: what came before that belongs to another run of the agent.
        if event.author in shells and event.actions.agent_state is not None:
            return
        if f"{event.branch}.".startswith(f"{invocation.branch}." if invocation.branch else ""):
            yield event


def _shells(agent: BaseAgent) -> frozenset[str]:
    return frozenset(it.name for it in _ancestors(agent) if not isinstance(it, LlmAgent))


def _ancestors(agent: BaseAgent) -> Iterator[BaseAgent]:
    parent = agent.parent_agent
    while parent is not None:
        yield parent
        parent = parent.parent_agent
