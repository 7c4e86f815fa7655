"""The attempt's rows: everything an agent process writes to our tables, one fenced statement each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from triage_agent.replay.journal import BegunCall, BegunRow, StoredReply
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.rows import RunRow
from triage_contract.states import CallState, Outcome, Settled, ToolKind
from triage_contract.verdict import CallFacts

_CLAIM: Final = "SELECT * FROM triage.claim($1, $2)"
_RECORD_ROOT: Final = "SELECT triage.record_root($1, $2, $3::jsonb)"
_BEGIN_CALL: Final = "SELECT * FROM triage.begin_call($1, $2, $3, $4, $5, $6::jsonb, $7, $8)"
_END_CALL: Final = "SELECT triage.end_call($1, $2, $3, $4, $5::jsonb, $6::jsonb, $7)"
_DOUBT_CALL: Final = "SELECT triage.doubt_call($1, $2, $3, $4)"
_BEGUN_CALL: Final = "SELECT * FROM triage.begun_call($1, $2, $3)"
_SETTLE_CALL: Final = "SELECT triage.settle_call($1, $2, $3, $4, $5::jsonb, $6, $7) AS may_run"
_NOTE_REPAIR: Final = "SELECT triage.note_repair($1, $2, $3, $4)"
_STORE_REPLY: Final = "SELECT triage.store_reply($1, $2, $3, $4::jsonb, $5, $6, $7)"
_REPLIES: Final = "SELECT * FROM triage.replies_of($1, $2)"
_CALLS: Final = "SELECT * FROM triage.calls_of($1, $2)"
_OPEN_SESSION: Final = "SELECT * FROM triage.open_session($1, $2, $3)"
_READ_SESSION: Final = "SELECT * FROM triage.read_session($1, $2)"
_EVENTS: Final = "SELECT * FROM triage.events_of($1, $2) AS event"
_APPEND_EVENT: Final = (
    "SELECT triage.append_event($1, $2, $3, $4, $5, $6, $7::jsonb, $8::jsonb, $9::jsonb, $10::jsonb)"
)
_RELEASE: Final = "SELECT triage.release($1, $2)"
_FINISH: Final = "SELECT triage.finish($1, $2, $3, $4, $5)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session without its events: three states, and when it was last written to, in UTC without a zone."""

    state: Mapping[str, Any]
    app_state: Mapping[str, Any]
    user_state: Mapping[str, Any]
    update_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event to store, and what it changes. ``marker`` is when the session was last written to, as the writer knows.

    ``timestamp`` and ``marker`` are in UTC without a zone. An empty state changes nothing.
    """

    id: str
    invocation_id: str
    timestamp: datetime
    marker: datetime
    event: Mapping[str, Any]
    state: Mapping[str, Any]
    app_state: Mapping[str, Any]
    user_state: Mapping[str, Any]


class AttemptRecord:
    """The rows of one attempt, written with its token: a ``Journal``, its session, its own beginning and end.

    Each method raises FencedError where the attempt is no longer the current one, DatabaseUnreachableError where the
    database does not answer, and nothing of it is written then.

    What is journaled after the fact, a reply of a model or the end of a call, is on its way to the database when its
    method returns, and there before the next statement: whatever happens to the process then, it arrives. An error that
    it meets is raised by the next method.
    """

    def __init__(self, connection: PreparedConnection, *, serial: int, token: str) -> None:
        self._connection = connection
        self._serial = serial
        self._token = token

    async def claim(self) -> RunRow:
        """Take the attempt; only one process ever can.

        Raises:
            AlreadyClaimedError: another process did.
        """
        (row,) = await self._call(_CLAIM)
        return RunRow.from_mapping({**row, "message": _loaded(row["message"]), "root": _loaded(row["root"])})

    async def record_root(self, root: Mapping[str, Any]) -> None:
        """Record name, kind, tools and fingerprint of the agent tree, unless an earlier attempt did."""
        await self._call(_RECORD_ROOT, _json(root))

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
        """Journal a call as begun before it runs, or give the result that it has."""
        (row,) = await self._call(_BEGIN_CALL, call_id, tool, kind, _json(args), function_call_id, may_repeat)
        return BegunCall(
            is_begun=row["is_begun"],
            is_in_doubt=row["is_in_doubt"],
            result=_loaded(row["result"]),
            actions=_loaded(row["actions"]),
        )

    async def end_call(
        self,
        call_id: str,
        *,
        state: CallState,
        result: Mapping[str, Any],
        actions: Mapping[str, Any],
        is_duplicate: bool,
    ) -> None:
        """Journal what became of a begun call. ``is_duplicate``: the tracker said that it had done this before."""
        await self._post(_END_CALL, call_id, state, _json(result), _json(actions), is_duplicate)

    async def doubt_call(self, call_id: str, message: str) -> None:
        """Journal that a begun call ended with an error after which nobody knows whether it happened."""
        await self._call(_DOUBT_CALL, call_id, message)

    async def begun_call(self, call_id: str) -> BegunRow:
        """Read what the journal holds of a call in doubt."""
        (row,) = await self._call(_BEGUN_CALL, call_id)
        return BegunRow(args=_loaded(row["args"]), begun_at=row["begun_at"], asked_at=row["asked_at"])

    async def settle_call(
        self,
        call_id: str,
        settled: Settled,
        *,
        result: Mapping[str, Any] | None,
        message: str,
        asked_at: datetime,
    ) -> bool:
        """Journal what its outside world says of a call in doubt; gives whether it may run again now.

        ``asked_at`` is when it was asked, by the database's clock: only what was known of its process by then counts.
        """
        kept = None if result is None else _json(result)
        (row,) = await self._call(_SETTLE_CALL, call_id, settled, kept, message, asked_at)
        return bool(row["may_run"])

    async def note_repair(self, call_id: str | None, message: str) -> None:
        """Note, for the operator to tell, how the session was put right. ``call_id`` None: it was about no call."""
        await self._call(_NOTE_REPAIR, call_id, message)

    async def store_reply(
        self, key: str, reply: Mapping[str, Any], *, prompt_tokens: int, output_tokens: int, seconds: float
    ) -> None:
        """Journal a model reply under a new key, with the tokens and seconds that it cost."""
        await self._post(_STORE_REPLY, key, _json(reply), prompt_tokens, output_tokens, seconds)

    async def replies(self) -> tuple[StoredReply, ...]:
        """Read the invocation's replies, the oldest first."""
        rows = await self._call(_REPLIES)
        return tuple(StoredReply(key=row["key"], reply=_loaded(row["reply"])) for row in rows)

    async def calls(self) -> tuple[CallFacts, ...]:
        """Read what the verdict needs of the invocation's journal."""
        return tuple(map(CallFacts.from_row, await self._call(_CALLS)))

    async def open_session(self, now: datetime) -> StoredSession:
        """Create the attempt's session, unless it is there, and read it. ``now`` is in UTC without a zone."""
        (row,) = await self._call(_OPEN_SESSION, now)
        return _session(row)

    async def read_session(self) -> StoredSession | None:
        """Read the attempt's session; None: it is not there yet."""
        rows = await self._call(_READ_SESSION)
        return _session(rows[0]) if rows else None

    async def events(self) -> list[str]:
        """Read the events of the attempt's session in their order, each as the JSON of an ADK event."""
        return [row["event"] for row in await self._call(_EVENTS)]

    async def append_event(self, event: NewEvent) -> None:
        """Store an event in the attempt's session.

        Raises:
            SessionStaleError: somebody wrote to the session since.
            SessionMissingError: it is not there.
        """
        states = [_json(it) if it else None for it in (event.state, event.app_state, event.user_state)]
        await self._call(
            _APPEND_EVENT,
            event.marker,
            event.id,
            event.invocation_id,
            event.timestamp,
            _json(event.event),
            *states,
        )

    async def release(self) -> None:
        """Give the token up, so that a successor can start.

        Raises:
            CallRunningError: a call that this attempt began has not ended.
        """
        await self._call(_RELEASE)

    async def finish(
        self, outcome: Outcome, *, error: str | None = None, retry_after_seconds: float | None = None
    ) -> None:
        """End the attempt with an outcome of its own. ``error`` is one line without secrets."""
        await self._call(_FINISH, outcome, error, retry_after_seconds)

    async def _call(self, statement: str, *args: Any) -> list[Mapping[str, Any]]:
        return await self._connection.fetch(statement, self._serial, self._token, *args)

    async def _post(self, statement: str, *args: Any) -> None:
        await self._connection.post(statement, self._serial, self._token, *args)


def _session(row: Mapping[str, Any]) -> StoredSession:
    return StoredSession(
        state=_loaded(row["state"]) or {},
        app_state=_loaded(row["app_state"]) or {},
        user_state=_loaded(row["user_state"]) or {},
        update_time=row["update_time"],
    )


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)
