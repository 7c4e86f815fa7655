"""What the rules need to know of an invocation: of its events, its run and its journaled calls.

The event's fields are those of google-adk 2.13.0 (``events/event.py``, ``events/event_actions.py``), as its
schema version 1 stores them in ``events.event_data``: ``Event.model_dump(mode="json", exclude_none=True)``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self, TypeVar

from triage_contract.states import CallState, Doubt, InDoubt, ToolKind

USER: Final = "user"
"""Author of messages and answers from outside, and of the responses that ADK makes for its task agents."""

NODE_WAITING: Final = 4
"""Number in ADK's ``NodeStatus``, none of which it ever changes: the node waits for its user."""

FINISH_TASK: Final = "finish_task"
"""ADK's tool with which an agent in task mode ends."""

_GATES: Final = ("requested_tool_confirmations", "requested_auth_configs")
"""Event actions that name, by the ids of calls, what a person has to give first."""

TASK_ENDS: Final = frozenset({"Task completed.", "Task failed."})
"""Results of that tool which end the task; any other asks the model for a correction."""


_Member = TypeVar("_Member", bound=StrEnum)


class RootKind(StrEnum):
    """What kind of agent the root is. The agent writes it into the run's row, the rules read it."""

    LLM = "llm"
    WORKFLOW = "workflow"
    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"
    LOOP = "loop"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The root of the agent tree."""

    name: str
    kind: RootKind

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read the ``root`` of a run's row. A kind of a later release is as good as a custom agent."""
        return cls(name=record["name"], kind=_member(RootKind, record["kind"]) or RootKind.CUSTOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """A run of ours. ``root`` None: no attempt has recorded it, so none came as far as to run the agent.

    ``in_doubt`` is what its agent wants done about undeclared calls in doubt.
    """

    root: Root | None
    in_doubt: InDoubt = InDoubt.PARK


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """A row of the journal. None stands for a state or kind which this release does not know.

    ``key`` names the row, ``id`` is ADK's id of the function call that began it last. ``epoch`` is that of the
    attempt which did. ``confirmed``: its process can do nothing more about it. ``cleared``: it was decided that it may
    run again. ``doubt`` None: its outside world was not asked. ``asked_confirmed``: what ``confirmed`` was when it was.
    """

    key: str
    id: str
    name: str
    state: CallState | None
    kind: ToolKind | None
    epoch: int = 0
    confirmed: bool = False
    cleared: bool = False
    doubt: Doubt | None = None
    asked_confirmed: bool = False

    @classmethod
    def from_row(cls, row: Mapping[Any, Any]) -> Self:
        """Read what ``CALLS`` gives of a row of ``triage.tool_calls``."""
        return cls(
            key=row["key"],
            id=row["id"],
            name=row["tool"],
            state=_member(CallState, row["state"]),
            kind=_member(ToolKind, row["kind"]),
            epoch=row["epoch"],
            confirmed=row["confirmed"],
            cleared=row["cleared"],
            doubt=None if row["doubt"] is None else _member(Doubt, row["doubt"]) or Doubt.UNKNOWN,
            asked_confirmed=row["asked_confirmed"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function call.

    ``event_id`` is the id of the event that holds it. ``long_running``: ADK pauses on it until an answer comes from
    outside; gates are such calls. ``branch`` and ``scope`` are those of its event, empty outside parallel branches and
    task agents; an event that answers the call has to carry them, else ADK does not find its agent.
    """

    id: str
    name: str
    event_id: str = ""
    long_running: bool = False
    branch: str = ""
    scope: str = ""

    @property
    def gate(self) -> bool:
        """Whether ADK itself asks for a confirmation, a credential or an input; no tool stands behind it."""
        return self.name.startswith("adk_request_")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFacts:
    """A stored event.

    ``branch`` and ``scope`` are empty outside parallel branches and task agents. ``said``: it has content or an
    output. ``gated``: those of its answers that only ask for a confirmation or a credential; nothing ran.
    ``final``: ADK takes its content for the last word of its author. ``text`` is its text without thoughts;
    None: it has none, or the statement left it out. ``nodes`` are the statuses in an agent state; None: it has
    no state, empty: a state that is no workflow's.
    """

    author: str = ""
    branch: str = ""
    scope: str = ""
    calls: tuple[Call, ...] = ()
    answers: tuple[str, ...] = ()
    gated: frozenset[str] = frozenset()
    said: bool = False
    final: bool = False
    text: str | None = None
    transfer_to: str | None = None
    end_of_agent: bool = False
    nodes: tuple[int, ...] | None = None
    error_code: str | None = None
    error_message: str | None = None
    compaction: bool = False

    @property
    def failed(self) -> bool:
        """Whether it is an error and nothing else. A reply that was cut short is an error with content."""
        return self.error_code is not None and not self.said


def event_facts(event: Mapping[str, Any]) -> EventFacts:
    """Read a stored event: the whole ``event_data``, or what ``EVENTS`` left of it."""
    content: Mapping[str, Any] | None = event.get("content")
    parts: list[Mapping[str, Any]] = (content or {}).get("parts") or []
    actions: Mapping[str, Any] = event.get("actions") or {}
    long_running = set(event.get("long_running_tool_ids") or ())
    branch, scope = event.get("branch") or "", event.get("isolation_scope") or ""
    calls = tuple(
        Call(
            id=call.get("id", ""),
            name=call.get("name", ""),
            event_id=event.get("id", ""),
            long_running=call.get("id") in long_running,
            branch=branch,
            scope=scope,
        )
        for part in parts
        if (call := part.get("function_call")) is not None
    )
    responses = [part["function_response"] for part in parts if "function_response" in part]
    texts = [part["text"] for part in parts if part.get("text") and not part.get("thought")]
    state: Mapping[str, Any] | None = actions.get("agent_state")
    # A model that returned nothing leaves an error with an empty content, which says nothing.
    has_content = content is not None and not (event.get("error_code") is not None and not parts)
    return EventFacts(
        author=event.get("author", ""),
        branch=branch,
        scope=scope,
        calls=calls,
        answers=tuple(response.get("id", "") for response in responses),
        gated=frozenset(call for gate in _GATES for call in actions.get(gate) or {}),
        said=has_content or event.get("output") is not None,
        final=has_content
        and not calls
        and (
            bool(actions.get("skip_summarization"))
            or any(map(_ends_task, responses))
            or not (responses or _ends_in_code(parts))
        ),
        text="".join(texts) or None,
        transfer_to=actions.get("transfer_to_agent"),
        end_of_agent=bool(actions.get("end_of_agent")),
        nodes=None if state is None else tuple(sorted(_statuses(state))),
        error_code=event.get("error_code"),
        error_message=event.get("error_message"),
        compaction=actions.get("compaction") is not None,
    )


def _member(kind: type[_Member], value: str) -> _Member | None:
    return next((member for member in kind if member.value == value), None)


def _ends_task(response: Mapping[str, Any]) -> bool:
    result = response.get("response") or {}
    return response.get("name") == FINISH_TASK and result.get("result") in TASK_ENDS


def _ends_in_code(parts: list[Mapping[str, Any]]) -> bool:
    """Whether code was written and is to be run, or was run and its result goes back to the model."""
    return bool(parts) and ("executable_code" in parts[-1] or "code_execution_result" in parts[-1])


def _statuses(state: Mapping[str, Any]) -> list[int]:
    nodes = state.get("nodes")
    if not isinstance(nodes, Mapping):
        return []
    return [node.get("status", 0) for node in nodes.values() if isinstance(node, Mapping)]
