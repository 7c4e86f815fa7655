"""The ADK plugin behind which a tool call is journaled: one that has a result is answered, and not run again."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.flows.llm_flows.tools._error_handler import run_on_tool_error_callbacks
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow._tool_node import _ToolNode
from typing_extensions import override

from triage_agent.exceptions import AgentError, ToolFailedError
from triage_agent.kinds import kind_of
from triage_agent.redacting import redacted
from triage_agent.replay.dangling import call_event, call_key, is_behind_a_call
from triage_agent.replay.gate import INSIDE_CALL, Gate
from triage_agent.replay.journal import Journal
from triage_agent.replay.packing import packed, unpacked
from triage_agent.replay.replies import call_id
from triage_agent.replay.sanitising import storable
from triage_agent.replay.trouble import Trouble
from triage_contract.exceptions import DatabaseError
from triage_contract.names import REPLAYED_METADATA
from triage_contract.states import CallState, ToolKind

CONTROL_TOOLS: Final = frozenset({"transfer_to_agent", "exit_loop", "finish_task", "set_model_response"})
"""ADK's own tools: what they do is in their event actions, and ADK does it again from the events alone."""


@dataclass(slots=True, kw_only=True)
class _Begun:
    """A call under way, inside the call ``outer``. ``raised``: what becomes its result is the tool's error."""

    outer: str
    end: Callable[[], None]
    raised: bool = False


class CallingPlugin(BasePlugin):
    """Stands before and behind every tool call of a run, and sees each event before it is stored."""

    def __init__(
        self, *, journal: Journal, declared: Mapping[str, ToolKind], gate: Gate, trouble: Trouble
    ) -> None:
        super().__init__(name="triage_calling")
        self._journal = journal
        self._declared = declared
        self._gate = gate
        self._trouble = trouble
        self._begun: dict[str, _Begun] = {}
        self._replayed: set[str] = set()

    @override
    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        self._trouble.check()
        if isinstance(tool_context.node, _ToolNode):
            # A workflow's node has no model that called it: ADK would give each of its runs an id at random.
            # So would it to each run of an agent that runs as a tool: the call of that one tells them apart.
            place = f"{INSIDE_CALL.get() or tool_context.invocation_id} {tool_context.node_path}"
            tool_context.function_call_id = call_id(place, 0, brought=False)
        key = _key_of(tool, tool_context)
        if key is None:
            return None
        end = await self._gate.enter_call()
        self._begun[key] = _Begun(outer=INSIDE_CALL.get(), end=end)
        try:
            kind = kind_of(tool, self._declared)
            answer = await self._journal.begin_call(
                key,
                tool=tool.name,
                kind=kind,
                args=storable(tool_args),
                function_call_id=tool_context.function_call_id or key,
                may_repeat=True,
            )
        except (DatabaseError, AgentError) as error:
            self._trouble.note(error)
            raise
        if answer.is_begun:
            INSIDE_CALL.set(key)
            return None
        self._settle(key)
        self._replayed.add(key)
        _restore(tool_context, answer.actions or {})
        return unpacked(answer.result or {})

    @override
    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        self._trouble.check()
        key = _key_of(tool, tool_context)
        if key is None or key not in self._begun:
            return None
        actions = tool_context.actions
        kept = packed(result, is_deferred=tool.is_long_running)
        try:
            await self._journal.end_call(
                key,
                state=_state(actions, raised=self._begun[key].raised),
                result=storable(kept),
                actions=storable(actions.model_dump(exclude_defaults=True)),
                is_duplicate=kept.get("duplicate_request") is True,
            )
        except DatabaseError as error:
            self._trouble.note(error)
            raise
        self._settle(key)
        return None

    @override
    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        if isinstance(error, asyncio.CancelledError):
            return None  # it stays begun: it may have had its effect
        self._trouble.check()
        key = _key_of(tool, tool_context)
        begun = self._begun.get(key) if key is not None else None
        if begun is None or begun.raised:
            return None
        begun.raised = True
        answer = await self._answer_of_others(tool, tool_args, tool_context, error)
        if answer is not None:
            return answer
        description = f"{type(error).__name__}: {redacted(str(error))}"
        if kind_of(tool, self._declared) is ToolKind.READ_ONLY:
            return {"error": storable(description)}
        failed = ToolFailedError(f"tool {tool.name!r} raised {description}")
        self._trouble.note(error if isinstance(error, DatabaseError) else failed)
        return None

    @override
    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if self._trouble.error is not None or is_behind_a_call(
            event, invocation_context.session, invocation_context.invocation_id, self._begun.keys()
        ):
            # ADK takes a call for lost once anything follows it, and does not store what is partial.
            return event.model_copy(update={"partial": True})
        if event.error_message is not None:
            event.error_message = redacted(event.error_message)
        answered = [response.id for response in event.get_function_responses()]
        if answered and self._replayed.issuperset(answered):
            event.custom_metadata = {**(event.custom_metadata or {}), REPLAYED_METADATA: True}
        return None

    async def _answer_of_others(
        self, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        """Ask the callbacks of other plugins and of the agent first, which ADK would only ask after this one."""
        invocation = tool_context._invocation_context
        agent = invocation.agent
        if isinstance(agent, LlmAgent) and tool_context.node is None:
            return await run_on_tool_error_callbacks(
                invocation_context=invocation,
                agent=agent,
                tool=tool,
                tool_args=tool_args,
                tool_context=tool_context,
                error=error,
            )
        return await invocation.plugin_manager.run_on_tool_error_callback(
            tool=tool, tool_args=tool_args, tool_context=tool_context, error=error
        )

    def _settle(self, key: str) -> None:
        begun = self._begun.pop(key)
        INSIDE_CALL.set(begun.outer)
        begun.end()


def _key_of(tool: BaseTool, context: ToolContext) -> str | None:
    """Give the key under which a call is journaled; None: it is left to ADK."""
    name = context.function_call_id
    # ADK makes a plain `BaseTool` up for a name that the agent does not have, and drives a task agent by its events.
    if not name or tool.name in CONTROL_TOOLS or type(tool) is BaseTool or tool._defers_response:
        return None
    event = call_event(context.session, context.invocation_id, name)
    return name if event is None else call_key(name, event)


def _state(actions: EventActions, *, raised: bool) -> CallState:
    if raised:
        return CallState.RAISED
    gated = actions.requested_tool_confirmations or actions.requested_auth_configs
    return CallState.GATED if gated else CallState.DONE


def _restore(context: ToolContext, actions: Mapping[str, Any]) -> None:
    """Bring back what a finished call did beside its result: state, artifacts, transfer, escalation."""
    restored = EventActions.model_validate(actions)
    for name, value in restored.state_delta.items():
        context.state[name] = value
    for name in restored.model_fields_set - {"state_delta"}:
        setattr(context.actions, name, getattr(restored, name))
