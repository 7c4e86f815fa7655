"""The ADK plugin behind which a model is asked each thing once, and calls get ids of our own."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.flows.llm_flows.core._finalizer import handle_after_model_callback, has_meaningful_content
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types
from typing_extensions import override

from triage_agent.replay.gate import INSIDE_CALL, Gate
from triage_agent.replay.journal import Journal
from triage_agent.replay.orders import disobeyed_calls, is_last_word, last_of
from triage_agent.replay.replies import Digester, Question, ReplyBook, Slot, call_id
from triage_agent.replay.sanitising import sanitise_part, storable
from triage_agent.replay.trouble import Trouble
from triage_contract.exceptions import DatabaseError
from triage_contract.names import REPLAYED_METADATA

REPLY_METADATA: Final = "triage_reply"
"""Key in an event's ``custom_metadata``: the key of the journaled reply that the event stores."""


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A question under way, known by the actions of the event that its answer becomes.

    ``end`` None: it is answered. ``asked_at`` is by the monotonic clock.
    """

    slot: Slot
    asked_at: float
    actions: EventActions
    end: Callable[[], None] | None


class AskingPlugin(BasePlugin):
    """Stands before and behind every model call of a run."""

    def __init__(self, *, journal: Journal, replies: ReplyBook, gate: Gate, trouble: Trouble) -> None:
        super().__init__(name="triage_asking")
        self._journal = journal
        self._replies = replies
        self._digester = Digester()
        self._gate = gate
        self._trouble = trouble
        self._asked: dict[int, _Asked] = {}
        self._obeyed_late: set[str | None] = set()
        self._said_again: dict[int, EventActions] = {}
        self._handled: set[str] = set()

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        await self._trouble.halt()
        end = await self._gate.enter_question()
        actions = callback_context.actions
        question = Question(
            agent=callback_context.agent_name,
            branch=callback_context.branch or "",
            node_path=callback_context.node_path,
            within=INSIDE_CALL.get(),
            contents_digest=self._digester.digest(llm_request.contents),
        )
        if (again := self._disobeyed(callback_context, question)) is not None:
            end()
            return again
        slot = self._replies.ask(question)
        asked = self._asked[id(actions)] = _Asked(
            slot=slot, asked_at=time.monotonic(), actions=actions, end=end
        )
        if slot.reply is None:
            return None
        _answered(asked)
        reply = LlmResponse.model_validate_json(json.dumps(slot.reply))
        # What the agent's own callbacks make of a reply they make of it again.
        altered = await handle_after_model_callback(
            callback_context._invocation_context, reply, Event(actions=actions)
        )
        return altered or reply

    @override
    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        asked = self._asked.get(id(callback_context.actions))
        if asked is None or asked.end is None or llm_response.partial:
            return None
        await self._trouble.halt()
        try:
            # An empty or blocked reply is no answer: the next attempt asks again.
            if has_meaningful_content(llm_response):
                await self._keep(asked, llm_response)
        finally:
            _answered(asked)
        return None

    @override
    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        await self._trouble.halt()
        self._trouble.note_model(error)
        asked = self._asked.get(id(callback_context.actions))
        if asked is not None:
            _answered(asked)
        return None

    @override
    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        self._handled.add(event.id)
        if id(event.actions) in self._said_again or self._obeyed_late.intersection(
            it.id for it in _calls_and_answers(event)
        ):
            # They are stored already; and ADK does not store what is partial.
            return event.model_copy(update={"partial": True})
        asked = self._asked.get(id(event.actions))
        if asked is None or event.partial:
            return None
        _answered(asked)  # by a callback of the agent, in the model's place
        marks: dict[str, Any] = {REPLY_METADATA: asked.slot.key}
        if asked.slot.reply is not None:
            marks[REPLAYED_METADATA] = True
        event.custom_metadata = {**(event.custom_metadata or {}), **marks}
        return None

    def _disobeyed(self, context: CallbackContext, question: Question) -> LlmResponse | None:
        """Give again what ended the turn, by its words or by answers to its calls, in a process that died of it."""
        invocation = context._invocation_context
        session, invocation_id = invocation.session, invocation.invocation_id
        last = last_of(session, invocation_id, context.agent_name, invocation.branch)
        if last is None or (question.starts_over and last.node_info.path != question.node_path):
            return None  # Something came after it, or it is of an earlier round.
        if last.id in self._handled:
            return None  # ADK was there to act on it.
        self._handled.add(last.id)
        if is_last_word(last):
            self._said_again[id(context.actions)] = context.actions
            return LlmResponse(content=last.content and last.content.model_copy(deep=True))
        calls = disobeyed_calls(session, invocation_id, last)
        if calls is None:
            # The agent goes on; the loop around it does not.
            context.actions.escalate = last.actions.escalate
            return None
        self._obeyed_late |= {call.id for call in calls.get_function_calls()}
        return LlmResponse(content=calls.content and calls.content.model_copy(deep=True))

    async def _keep(self, asked: _Asked, reply: LlmResponse) -> None:
        key, seconds = asked.slot.key, time.monotonic() - asked.asked_at
        parts = (reply.content.parts or []) if reply.content else []
        for place, part in enumerate(parts):
            sanitise_part(part)
            if part.function_call is not None:
                part.function_call.id = call_id(key, place, brought=part.function_call.id is not None)
        prompt_tokens, output_tokens = _tokens(reply.usage_metadata)
        try:
            await self._journal.store_reply(
                key,
                _as_json(reply),
                prompt_tokens=prompt_tokens,
                output_tokens=output_tokens,
                seconds=seconds,
            )
        except DatabaseError as error:
            self._trouble.note(error)
            raise


def _calls_and_answers(event: Event) -> list[types.FunctionCall | types.FunctionResponse]:
    return [*event.get_function_calls(), *event.get_function_responses()]


def _answered(asked: _Asked) -> None:
    if asked.end is not None:
        asked.end()
        asked.end = None


def _as_json(reply: LlmResponse) -> Mapping[str, Any]:
    kept: Mapping[str, Any] = storable(reply.model_dump(mode="json", exclude_none=True))
    return kept


def _tokens(usage: types.GenerateContentResponseUsageMetadata | None) -> tuple[int, int]:
    """Give the tokens that went in and came out; a model's thoughts are paid for as output."""
    if usage is None:
        return 0, 0
    return usage.prompt_token_count or 0, (usage.candidates_token_count or 0) + (
        usage.thoughts_token_count or 0
    )
