"""What the plugins need of a journal. `triage_agent.attempt.record` keeps one in Postgres."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from triage_contract.states import CallState, ToolKind


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunCall:
    """The answer to beginning a call: run it, take what an earlier attempt left, or neither.

    ``is_in_doubt``: it began before, and may not run again. ``result`` and ``actions`` are set where both are False.
    """

    is_begun: bool
    is_in_doubt: bool
    result: Mapping[str, Any] | None
    actions: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunRow:
    """What the journal holds of a call in doubt: its arguments, when it began, and what time it was when this was read.

    Both times are by the database's clock.
    """

    args: Mapping[str, Any]
    begun_at: datetime
    asked_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """A journaled model reply: its key, and ADK's ``LlmResponse`` as JSON."""

    key: str
    reply: Mapping[str, Any]


class Journal(Protocol):
    """A record of model replies and tool calls that outlives the process."""

    async def begin_call(
        self,
        call_id: str,
        *,
        tool: str,
        kind: ToolKind,
        args: Mapping[str, Any],
        function_call_id: str,
        may_repeat: bool,
    ) -> BegunCall:
        """Note a call as begun before it runs, or give the result that it has.

        ``call_id`` is its key in the journal, ``function_call_id`` ADK's id. ``may_repeat``: one that began, and whose
        end is not known, may run again.
        """

    async def end_call(
        self,
        call_id: str,
        *,
        state: CallState,
        result: Mapping[str, Any],
        actions: Mapping[str, Any],
        is_duplicate: bool,
    ) -> None:
        """Note what became of a begun call. ``is_duplicate``: the tracker said that it had done this before."""

    async def doubt_call(self, call_id: str, message: str) -> None:
        """Note that a begun call ended with an error after which nobody knows whether it happened."""

    async def store_reply(
        self, key: str, reply: Mapping[str, Any], *, prompt_tokens: int, output_tokens: int, seconds: float
    ) -> None:
        """Keep a model reply under a new key, with the tokens and seconds that it cost."""


class NoJournal:
    """Remembers nothing: by hand on SQLite, only the tracker's key suppresses a duplicate."""

    async def begin_call(
        self,
        call_id: str,
        *,
        tool: str,
        kind: ToolKind,
        args: Mapping[str, Any],
        function_call_id: str,
        may_repeat: bool,
    ) -> BegunCall:
        """Let every call run."""
        return BegunCall(is_begun=True, is_in_doubt=False, result=None, actions=None)

    async def end_call(
        self,
        call_id: str,
        *,
        state: CallState,
        result: Mapping[str, Any],
        actions: Mapping[str, Any],
        is_duplicate: bool,
    ) -> None:
        """Forget it."""

    async def doubt_call(self, call_id: str, message: str) -> None:
        """Forget it."""

    async def store_reply(
        self, key: str, reply: Mapping[str, Any], *, prompt_tokens: int, output_tokens: int, seconds: float
    ) -> None:
        """Forget it."""
