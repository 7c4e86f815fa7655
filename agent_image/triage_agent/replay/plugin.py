"""The ADK plugin that makes a run repeatable: replies asked once, finished calls not run again, ids of our own."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.invocation_context import InvocationContext
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from typing_extensions import override

from triage_agent.exceptions import AgentError, ToolFailedError
from triage_agent.kinds import kind_of
from triage_agent.models.errors import ModelFailure, describe
from triage_agent.replay.gate import Gate
from triage_agent.replay.journal import Journal, StoredReply
from triage_agent.replay.replies import Question, ReplyBook, call_id, contents_digest
from triage_agent.replay.sanitising import sanitise_part, storable
from triage_contract.exceptions import DatabaseError
from triage_contract.names import REPLAYED_METADATA
from triage_contract.states import CallState, ToolKind

REPLY_METADATA: Final = "triage_reply"
"""Key in an event's ``custom_metadata``: the key of the journaled reply that the event stores."""

CONTROL_TOOLS: Final = frozenset(
    {
        "transfer_to_agent",
        "exit_loop",
        "finish_task",
        "set_model_response",
        "adk_request_confirmation",
        "adk_request_credential",
        "adk_request_input",
    }
)
"""ADK's own tools: what they do is in their event actions, and ADK does it again from the events alone."""


class JournalPlugin(BasePlugin):
    """Stands before and behind every model and tool call of a run.

    ``failure`` is what ended the run from inside; None: nothing did. ``model_failure``: the model's last refusal.
    """

    def __init__(
        self, *, journal: Journal, replies: ReplyBook, gate: Gate, declared: Mapping[str, ToolKind]
    ) -> None:
        super().__init__(name="triage_journal")
        self.failure: DatabaseError | AgentError | None = None
        self.model_failure: ModelFailure | None = None
        self._journal = journal
        self._replies = replies
        self._gate = gate
        self._declared = declared
        self._questions: dict[tuple[str, str, str], Question] = {}
        self._settled: set[str] = set()
        self._replayed: set[str] = set()

    @override
    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        place = _place(callback_context)
        if self._questions.pop(place, None) is not None:
            self._gate.leave()  # a callback of the agent answered in the model's place
        await self._gate.enter()
        question = Question(
            agent=place[0],
            branch=place[1],
            node_path=place[2],
            contents_digest=contents_digest(llm_request.contents),
        )
        stored = self._replies.answer(question)
        if stored is None:
            self._questions[place] = question
            return None
        self._gate.leave()
        reply = LlmResponse.model_validate_json(json.dumps(stored.reply))
        reply.custom_metadata = {**(reply.custom_metadata or {}), REPLAYED_METADATA: True}
        return reply

    @override
    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        if llm_response.partial:
            return None
        question = self._questions.pop(_place(callback_context), None)
        if question is None:
            return None
        try:
            if llm_response.error_code is None:
                await self._keep(question, llm_response)
        finally:
            self._gate.leave()
        return None

    @override
    async def on_model_error_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        if self._questions.pop(_place(callback_context), None) is not None:
            self._gate.leave()
        if self.failure is None:
            self.model_failure = describe(error)
        return None

    @override
    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        key = _call_key(tool, tool_context)
        if key is None:
            return None
        await self._gate.enter()
        try:
            begun = await self._journal.begin_call(
                key, tool=tool.name, kind=kind_of(tool, self._declared), args=storable(tool_args)
            )
        except (DatabaseError, AgentError) as error:
            self._fail(error)
            self._gate.leave()
            raise
        if begun.is_begun:
            return None
        self._gate.leave()
        self._settled.add(key)
        self._replayed.add(key)
        _restore(tool_context, begun.actions or {})
        return dict(begun.result or {})

    @override
    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        key = _call_key(tool, tool_context)
        if key is None or key in self._settled:
            return None
        actions = tool_context.actions
        gated = bool(actions.requested_tool_confirmations or actions.requested_auth_configs)
        await self._end(
            key, tool_context, state=CallState.GATED if gated else CallState.DONE, result=_as_object(result)
        )
        return None

    @override
    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        key = _call_key(tool, tool_context)
        if key is None or key in self._settled:
            return None
        if isinstance(error, asyncio.CancelledError):
            self._gate.leave()  # the call stays begun: it may have had its effect
            return None
        if not _is_unknown(tool) and kind_of(tool, self._declared) is not ToolKind.READ_ONLY:
            self._gate.leave()
            self._fail(ToolFailedError(f"tool {tool.name!r} raised {type(error).__name__}: {error}"))
            return None
        result = {"error": storable(f"{type(error).__name__}: {error}")}
        await self._end(key, tool_context, state=CallState.RAISED, result=result)
        return result

    @override
    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if self.failure is not None and event.error_code is not None:
            # ADK takes a call for lost once anything follows it: an error of ours must not be stored behind one.
            return event.model_copy(update={"partial": True})
        if self.model_failure is not None and event.error_code is not None:
            event.error_message = self.model_failure.message  # a provider's own text may hold a key
        answered = [response.id for response in event.get_function_responses()]
        if answered and self._replayed.issuperset(answered):
            event.custom_metadata = {**(event.custom_metadata or {}), REPLAYED_METADATA: True}
        return None

    async def _keep(self, question: Question, reply: LlmResponse) -> None:
        key = self._replies.next_key(question)
        parts = (reply.content.parts or []) if reply.content else []
        for place, part in enumerate(parts):
            sanitise_part(part)
            if part.function_call is not None:
                part.function_call.id = call_id(key, place, brought=part.function_call.id is not None)
        reply.custom_metadata = {**(reply.custom_metadata or {}), REPLY_METADATA: key}
        stored = StoredReply(key=key, reply=storable(reply.model_dump(mode="json", exclude_none=True)))
        usage = reply.usage_metadata
        try:
            await self._journal.store_reply(
                key,
                stored.reply,
                prompt_tokens=(usage.prompt_token_count or 0) if usage else 0,
                output_tokens=(usage.candidates_token_count or 0) if usage else 0,
            )
        except DatabaseError as error:
            self._fail(error)
            raise
        self._replies.add(stored)

    async def _end(
        self, key: str, tool_context: ToolContext, *, state: CallState, result: dict[str, Any]
    ) -> None:
        self._settled.add(key)
        try:
            await self._journal.end_call(
                key,
                state=state,
                result=storable(result),
                actions=storable(tool_context.actions.model_dump(mode="python", exclude_defaults=True)),
                is_duplicate=result.get("duplicate_request") is True,
            )
        except DatabaseError as error:
            self._fail(error)
            raise
        finally:
            self._gate.leave()

    def _fail(self, error: DatabaseError | AgentError) -> None:
        if self.failure is None:
            self.failure = error


def _place(context: CallbackContext) -> tuple[str, str, str]:
    invocation = context._invocation_context
    return context.agent_name, invocation.branch or "", getattr(context, "node_path", "") or ""


def _call_key(tool: BaseTool, context: ToolContext) -> str | None:
    return None if tool.name in CONTROL_TOOLS else context.function_call_id


def _is_unknown(tool: BaseTool) -> bool:
    """Whether ADK made this tool up for a name that the agent does not have: nothing ran."""
    return type(tool) is BaseTool


def _as_object(result: Any) -> dict[str, Any]:
    """Give a result the shape in which ADK stores it."""
    return result if isinstance(result, dict) else {"result": result}


def _restore(context: ToolContext, actions: Mapping[str, Any]) -> None:
    """Bring back what a finished call did beside its result: state, artifacts, transfer, escalation."""
    restored = EventActions.model_validate(actions)
    for name, value in restored.state_delta.items():
        context.state[name] = value
    for name in restored.model_fields_set - {"state_delta"}:
        setattr(context.actions, name, getattr(restored, name))
