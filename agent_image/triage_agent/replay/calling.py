"""The ADK plugin behind which a tool call is journaled: one that has a result is answered, and not run again."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.flows.llm_flows.tools._error_handler import run_on_tool_error_callbacks
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow._tool_node import _ToolNode
from typing_extensions import override

from triage_agent.exceptions import AgentError, InDoubtError, ToolFailedError
from triage_agent.kinds import declared_key, has_declared_key, is_not_performed, journal_key, kind_of
from triage_agent.redacting import redacted
from triage_agent.replay.dangling import answer_from_outside, call_event, call_key, is_behind_a_call
from triage_agent.replay.gate import INSIDE_CALL, Gate
from triage_agent.replay.journal import Journal
from triage_agent.replay.packing import packed, unpacked
from triage_agent.replay.replies import call_id
from triage_agent.replay.sanitising import storable
from triage_agent.replay.trouble import Trouble, chain
from triage_agent.trees import is_control
from triage_contract.exceptions import DatabaseError, TriageError
from triage_contract.names import EFFECT_KEY_PREFIX, REPLAYED_METADATA
from triage_contract.states import CallState, InDoubt, ToolKind
from triage_contract.verdict.doubts import REPEATABLE


@dataclass(slots=True, kw_only=True)
class _Begun:
    """A call under way. ``raised``: what becomes its result is the tool's error; ``returned``: its tool has ended.

    ``spared``: its error says that nothing happened.

    ``outer`` is the key of the call that it is inside of; empty: of none. ``leave`` lets others go on.
    """

    context: ToolContext
    key: str
    kind: ToolKind
    outer: str
    leave: Callable[[], None]
    raised: bool = False
    spared: bool = False
    returned: bool = False


class CallingPlugin(BasePlugin):
    """Stands before and behind every tool call of a run, and sees each event before it is stored."""

    def __init__(
        self,
        *,
        journal: Journal,
        declared: Mapping[str, ToolKind],
        in_doubt: InDoubt,
        gate: Gate,
        trouble: Trouble,
    ) -> None:
        super().__init__(name="triage_calling")
        self._journal = journal
        self._declared = declared
        self._in_doubt = in_doubt
        self._gate = gate
        self._trouble = trouble
        self._begun: dict[int, _Begun] = {}
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._replayed: set[str] = set()
        self._unrun: list[str] = []

    @override
    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        await self._trouble.halt()
        if isinstance(tool_context.node, _ToolNode):
            # A workflow's node has no model that called it: ADK would give each of its runs an id at random.
            # So would it to each run of an agent that runs as a tool: the call of that one tells them apart.
            place = f"{INSIDE_CALL.get() or tool_context.invocation_id} {tool_context.node_path}"
            tool_context.function_call_id = call_id(place, 0, brought=False)
        if _is_left_to_adk(tool, tool_context):
            return None
        if (given := _given(tool, tool_context)) is not None:
            return dict(given)
        leave_gate = await self._gate.enter_call()
        try:
            kind = kind_of(tool, self._declared)
            try:
                key = _key_of(tool, tool_args, tool_context)
            except TriageError:
                raise
            # Code of the tool's own, on arguments that a model made up; nothing has begun.
            except Exception as error:  # noqa: BLE001
                leave_gate()
                return {"error": storable(f"{type(error).__name__}: {redacted(str(error))}")}
            leave = await self._enter(key, leave_gate)
            self._begun[id(tool_context)] = _Begun(
                context=tool_context, key=key, kind=kind, outer=INSIDE_CALL.get(), leave=leave
            )
            await self._trouble.halt()
            self._trouble.begin(key, outer=INSIDE_CALL.get())
            answer = await self._journal.begin_call(
                key,
                tool=tool.name,
                kind=kind,
                args=storable(tool_args),
                function_call_id=tool_context.function_call_id or key,
                may_repeat=kind in REPEATABLE
                or (kind is ToolKind.UNDECLARED and self._in_doubt is InDoubt.RETRY),
            )
        except (DatabaseError, AgentError) as error:
            await self._stop(error, tool_context)
        if answer.is_in_doubt:
            doubt = f"tool {tool.name!r}: call {key} began before, and may have happened"
            await self._stop(InDoubtError(doubt), tool_context)
        if answer.is_begun:
            INSIDE_CALL.set(key)
            if not tool.is_long_running:  # One that did not run would be waited for.
                _current_task().add_done_callback(partial(self._look_back, tool_context))
            return None
        self._end(tool_context)
        self._replayed.add(tool_context.function_call_id or key)
        _restore(tool_context, answer.actions or {})
        return unpacked(answer.result or {})

    @override
    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        begun = self._begun.get(id(tool_context))
        if begun is None or not self._trouble.is_running(begun.key):
            await self._trouble.halt()
            return None
        begun.returned = True
        actions = tool_context.actions
        kept = packed(result, is_deferred=tool.is_long_running)
        try:
            await self._journal.end_call(
                begun.key,
                state=_state(begun),
                result=storable(kept),
                actions=storable(actions.model_dump(exclude_defaults=True)),
                is_duplicate=kept.get("duplicate_request") is True,
            )
        except DatabaseError as error:
            await self._stop(error, tool_context)
        self._end(tool_context)
        return None

    @override
    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        begun = self._begun.get(id(tool_context))
        if begun is None or begun.raised or isinstance(error, asyncio.CancelledError):
            return None  # a cancelled one stays begun: it may have had its effect
        begun.raised = True
        if not self._trouble.is_behind(error):
            answer = await self._answer_of_others(tool, tool_args, tool_context, error)
            if answer is not None:
                return answer
            description = storable(f"{type(error).__name__}: {redacted(str(error))}")
            if begun.kind is ToolKind.READ_ONLY or is_not_performed(error):
                begun.spared = True
                return {"error": description}
            self._trouble.note(
                error if isinstance(error, DatabaseError) else await self._doubt(tool, begun, description)
            )
        _leave(begun)
        await self._trouble.calm()
        return None

    @override
    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> Event | None:
        if self._trouble.error is not None or is_behind_a_call(
            event,
            invocation_context.session,
            invocation_context.invocation_id,
            {begun.context.function_call_id for begun in self._begun.values()},
        ):
            # ADK takes a call for lost once anything follows it, and does not store what is partial.
            return event.model_copy(update={"partial": True})
        if event.error_message is not None:
            event.error_message = redacted(event.error_message)
        answered = [response.id for response in event.get_function_responses()]
        if answered and self._replayed.issuperset(answered):
            event.custom_metadata = {**(event.custom_metadata or {}), REPLAYED_METADATA: True}
        return None

    @override
    async def close(self) -> None:
        """Journal of the calls which never came to their tool that nothing ran."""
        for key in self._unrun:
            try:
                await self._journal.end_call(
                    key, state=CallState.GATED, result={}, actions={}, is_duplicate=False
                )
            except DatabaseError as error:
                self._trouble.note(error)

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

    async def _doubt(self, tool: BaseTool, begun: _Begun, description: str) -> DatabaseError | AgentError:
        """Journal that a tool raised and may have done something; gives the error that ends the attempt."""
        try:
            await self._journal.doubt_call(begun.key, description)
        except DatabaseError as error:
            return error
        if begun.kind is ToolKind.UNDECLARED and self._in_doubt is InDoubt.PARK:
            return InDoubtError(f"tool {tool.name!r} raised {description}; it may have had its effect before")
        return ToolFailedError(f"tool {tool.name!r} raised {description}")

    async def _enter(self, key: str, leave_gate: Callable[[], None]) -> Callable[[], None]:
        """Begin with a call. Two at once may ask for one effect: the second gets what becomes of the first."""
        lock = self._locks[key]
        await lock.acquire()
        holds = [lock]

        def leave(_task: object = None) -> None:
            leave_gate()
            if holds:
                self._trouble.end(key)
                holds.pop().release()

        _current_task().add_done_callback(leave)
        return leave

    def _look_back(self, context: ToolContext, task: "asyncio.Task[Any]") -> None:
        begun = self._begun.get(id(context))
        if begun is None or begun.raised or begun.returned or task.cancelled():
            return
        error = task.exception()
        # ADK tells of what a tool raises only where that is an Exception: with any other, it may have been the tool.
        if error is not None and all(isinstance(it, Exception) for it in chain(error)):
            self._unrun.append(begun.key)  # A callback that ADK asks after this one raised.

    async def _stop(self, error: DatabaseError | AgentError, context: ToolContext) -> NoReturn:
        self._trouble.note(error)
        # Whatever becomes of its task: this call is not one that nothing ran.
        if (begun := self._begun.pop(id(context), None)) is not None:
            _leave(begun)
        await self._trouble.halt()
        raise error

    def _end(self, context: ToolContext) -> None:
        _leave(self._begun.pop(id(context)))


def _current_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


def _leave(begun: _Begun) -> None:
    INSIDE_CALL.set(begun.outer)
    begun.leave()


def _is_left_to_adk(tool: BaseTool, context: ToolContext) -> bool:
    # ADK makes a plain `BaseTool` up for a name that the agent does not have, and drives a task agent by its events.
    return not context.function_call_id or is_control(tool) or type(tool) is BaseTool or tool._defers_response


def _key_of(tool: BaseTool, args: Mapping[str, Any], context: ToolContext) -> str:
    """Give the key under which a call is journaled.

    Raises:
        ConfigurationError: the tool declares a key that is none.
        Exception: the tool's own code has no key for such arguments.
    """
    if has_declared_key(tool) and not _is_answered_by_adk(tool, args, context):
        return journal_key(tool.name, declared_key(tool, args) or "")
    name = context.function_call_id or ""
    event = call_event(context.session, context.invocation_id, name)
    return name if event is None else call_key(name, event)


def _is_answered_by_adk(tool: BaseTool, args: Mapping[str, Any], context: ToolContext) -> bool:
    """Whether ADK does not call a function with these arguments, but tells the model what is wrong with them."""
    if not isinstance(tool, FunctionTool):
        return False
    converted, errors = tool._preprocess_args_with_validation(dict(args))
    given = tool._prepare_invocation_args(converted, context)
    return bool(errors) or any(name not in given for name in tool._get_mandatory_args())


def _given(tool: BaseTool, context: ToolContext) -> Mapping[str, Any] | None:
    """Give the answer that a call has in its session; None: it has none, or ADK looks for it itself."""
    if tool.is_long_running:
        return None
    return answer_from_outside(context.session, context.invocation_id, context.function_call_id or "")


def _state(begun: _Begun) -> CallState:
    if begun.spared and begun.key.startswith(EFFECT_KEY_PREFIX):
        return CallState.GATED  # The effect is still to be had: another call may ask for it.
    if begun.raised:
        return CallState.RAISED
    actions = begun.context.actions
    gated = actions.requested_tool_confirmations or actions.requested_auth_configs
    return CallState.GATED if gated else CallState.DONE


def _restore(context: ToolContext, actions: Mapping[str, Any]) -> None:
    """Bring back what a finished call did beside its result: state, artifacts, transfer, escalation."""
    restored = EventActions.model_validate(actions)
    for name, value in restored.state_delta.items():
        context.state[name] = value
    for name in restored.model_fields_set - {"state_delta"}:
        setattr(context.actions, name, getattr(restored, name))
