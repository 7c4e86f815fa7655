"""Carrying out what a person decided about a call in doubt."""

import json
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from triage_contract.database.rows import SessionKey, session_params

_CARRY_OUT: Final = text("""
WITH closed AS (
    SELECT FROM triage.fences
    WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id AND epoch = :fence AND token IS NULL
    FOR SHARE
)
UPDATE triage.tool_calls c
SET cleared_by = CASE WHEN NOT :done THEN 'decision' END,
    settled_by = CASE WHEN :done THEN 'decision' END,
    state = CASE WHEN :done THEN 'settled' ELSE 'begun' END,
    result = CASE WHEN :done THEN CAST(:result AS jsonb) END,
    actions = CASE WHEN :done THEN CAST('{}' AS jsonb) END,
    ended_at = CASE WHEN :done THEN clock_timestamp() END
WHERE c.app_name = :app_name AND c.user_id = :user_id AND c.session_id = :session_id AND c.call_id = :call
    AND c.state = 'begun' AND c.epoch = :epoch AND EXISTS (SELECT FROM closed)
""")


async def carry_out(
    connection: AsyncConnection,
    session: SessionKey,
    *,
    fence: int,
    call: str,
    epoch: int,
    result: Mapping[str, Any] | None,
) -> None:
    """Settle a call in doubt with a result, or let it run again (None).

    Nothing happens unless the session's fence is closed at ``fence`` and the call is still as its attempt left it.

    Args:
        connection: where a transaction is open.
        session: the call's session.
        fence: epoch of the session's fence, as it was observed with a null token.
        call: its key in the journal.
        epoch: that of the attempt which began it last.
        result: JSON that Postgres takes.
    """
    params = {
        **session_params(session),
        "fence": fence,
        "call": call,
        "epoch": epoch,
        "done": result is not None,
        "result": None if result is None else json.dumps(result),
    }
    await connection.execute(_CARRY_OUT, params)
