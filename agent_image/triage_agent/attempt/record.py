"""The attempt's rows: everything an agent process writes to our tables, one fenced statement each."""

import json
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.engine import Row
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_agent.replay.journal import BegunCall, BegunRow, StoredReply
from triage_contract.database.engine import translated
from triage_contract.database.rows import RunRow
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import CallState, Outcome, Settled, ToolKind

_CLAIM: Final = text("SELECT * FROM triage.claim(:serial, :token)")
_RECORD_ROOT: Final = text("SELECT triage.record_root(:serial, :token, CAST(:root AS jsonb))")
_BEGIN_CALL: Final = text(
    "SELECT * FROM triage.begin_call(:serial, :token, :call_id, :tool, :kind, CAST(:args AS jsonb),"
    " :function_call_id, :may_repeat)"
)
_END_CALL: Final = text(
    "SELECT triage.end_call(:serial, :token, :call_id, :state, CAST(:result AS jsonb), CAST(:actions AS jsonb),"
    " :is_duplicate)"
)
_DOUBT_CALL: Final = text("SELECT triage.doubt_call(:serial, :token, :call_id, :message)")
_SETTLE_CALL: Final = text(
    "SELECT triage.settle_call(:serial, :token, :call_id, :settled, CAST(:result AS jsonb), :message)"
)
_NOTE_REPAIR: Final = text("SELECT triage.note_repair(:serial, :token, :call_id, :message)")
_STORE_REPLY: Final = text(
    "SELECT triage.store_reply(:serial, :token, :key, CAST(:reply AS jsonb), :prompt_tokens, :output_tokens)"
)
_REPLIES: Final = text("SELECT * FROM triage.replies_of(:serial, :token)")
_BEGUN_CALL: Final = text(
    "SELECT c.args, c.begun_at FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id"
    " JOIN triage.tool_calls c USING (app_name, user_id, session_id)"
    " WHERE a.serial = :serial AND c.call_id = :call_id"
)
_RELEASE: Final = text("SELECT triage.release(:serial, :token)")
_FINISH: Final = text("SELECT triage.finish(:serial, :token, :outcome, :error, :retry_after_seconds)")


class AttemptRecord:
    """The rows of one attempt, written with its token: a ``Journal``, and the attempt's own beginning and end.

    Each method raises FencedError where the attempt is no longer the current one, DatabaseUnreachableError where the
    database does not answer, and nothing of it is written then.
    """

    def __init__(self, engine: AsyncEngine, url: DatabaseUrl, *, serial: int, token: str) -> None:
        # One statement is one transaction: a call costs one round trip.
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._url = url
        self._serial = serial
        self._token = token

    async def claim(self) -> RunRow:
        """Take the attempt; only one process ever can.

        Raises:
            AlreadyClaimedError: another process did.
        """
        return RunRow.from_mapping((await self._call(_CLAIM))[0]._mapping)

    async def record_root(self, root: Mapping[str, Any]) -> None:
        """Record name, kind, tools and fingerprint of the agent tree, unless an earlier attempt did."""
        await self._call(_RECORD_ROOT, root=_json(root))

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
        (row,) = await self._call(
            _BEGIN_CALL,
            call_id=call_id,
            tool=tool,
            kind=kind,
            args=_json(args),
            function_call_id=function_call_id,
            may_repeat=may_repeat,
        )
        return BegunCall(
            is_begun=row.is_begun, is_in_doubt=row.is_in_doubt, result=row.result, actions=row.actions
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
        await self._call(
            _END_CALL,
            call_id=call_id,
            state=state,
            result=_json(result),
            actions=_json(actions),
            is_duplicate=is_duplicate,
        )

    async def doubt_call(self, call_id: str, message: str) -> None:
        """Journal that a begun call ended with an error after which nobody knows whether it happened."""
        await self._call(_DOUBT_CALL, call_id=call_id, message=message)

    async def settle_call(
        self, call_id: str, settled: Settled, *, result: Mapping[str, Any] | None, message: str
    ) -> bool:
        """Journal what its outside world says of a call in doubt; gives whether it may run again now."""
        (row,) = await self._call(
            _SETTLE_CALL,
            call_id=call_id,
            settled=settled,
            result=None if result is None else _json(result),
            message=message,
        )
        return bool(row[0])

    async def note_repair(self, call_id: str | None, message: str) -> None:
        """Note, for the operator to tell, how the session was put right. ``call_id`` None: it was about no call."""
        await self._call(_NOTE_REPAIR, call_id=call_id, message=message)

    async def store_reply(
        self, key: str, reply: Mapping[str, Any], *, prompt_tokens: int, output_tokens: int
    ) -> None:
        """Journal a model reply under a new key, with the tokens that it cost."""
        await self._call(
            _STORE_REPLY,
            key=key,
            reply=_json(reply),
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
        )

    async def replies(self) -> tuple[StoredReply, ...]:
        """Read the invocation's replies, the oldest first."""
        return tuple(StoredReply(key=row.key, reply=row.reply) for row in await self._call(_REPLIES))

    async def begun_call(self, call_id: str) -> BegunRow:
        """Read what the journal holds of a call in doubt."""
        (row,) = await self._call(_BEGUN_CALL, call_id=call_id)
        return BegunRow(args=row.args, begun_at=row.begun_at)

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
        await self._call(_FINISH, outcome=outcome, error=error, retry_after_seconds=retry_after_seconds)

    async def _call(self, statement: Any, **params: Any) -> list[Row[Any]]:
        with translated(self._url):
            async with self._engine.connect() as connection:
                result = await connection.execute(
                    statement, {"serial": self._serial, "token": self._token, **params}
                )
                return list(result)


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, allow_nan=False)
