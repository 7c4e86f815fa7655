"""Issues in the table ``triage.issues``, beside the sessions."""

import asyncio
import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from triage_agent.current import CURRENT_ATTEMPT
from triage_agent.replay.gate import INSIDE_CALL
from triage_agent.trackers.interface import Filed
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUnreachableError
from triage_contract.states import ToolKind

ATTEMPT_SECONDS: Final = 15.0
"""Bounds one attempt on a connection that died without a word, or a key whose other writer is frozen."""

PATIENCE_SECONDS: Final = 90.0
"""A database that is away for a minute costs the run nothing."""

_RETRY_SECONDS: Final = (0.1, 0.3, 1.0, 2.0)
"""Pauses before another attempt; the last one repeats."""

_FILE_IN_CALL: Final = (
    "SELECT number, is_duplicate AS duplicate"
    " FROM triage.file_issue(:serial, :token, :call_id, :key, :title, :body)"
)

# A repeat updates, and takes no number from the sequence: a gap would look like an issue that is missing.
# Concurrent callers with one key meet at the unique index: one inserts, the others update what it committed.
_FILE: Final = (
    "WITH known AS ("
    " UPDATE triage.issues SET duplicates = duplicates + 1 WHERE key = :key RETURNING number, true AS duplicate"
    "), filed AS ("
    " INSERT INTO triage.issues AS issue (key, title, body, run_id)"
    " SELECT :key, :title, :body, CAST(:run_id AS uuid) WHERE NOT EXISTS (SELECT FROM known)"
    " ON CONFLICT (key) DO UPDATE SET duplicates = issue.duplicates + 1"
    " RETURNING number, duplicates > 0 AS duplicate"
    ") SELECT number, duplicate FROM known UNION ALL SELECT number, duplicate FROM filed"
)

logger = logging.getLogger(__name__)


class PostgresTracker:
    """Files with one statement on a connection of its own, which is gone while the model thinks.

    Inside a journaled call the same transaction notes the call as done: it has both, or neither.
    """

    kind: Final = ToolKind.IDEMPOTENT

    def __init__(
        self, url: DatabaseUrl, *, run_id: UUID | None, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        """Keep what an issue needs; nothing connects yet. ``run_id`` is noted with each; None: by hand."""
        self._url = url
        self._run_id = run_id
        self._patience_seconds = patience_seconds

    async def file(
        self, key: str | None, title: str, body: str, *, asked_at: datetime | None = None
    ) -> Filed:
        """See ``Tracker.file``. An attempt that was lost may have filed: the next has the same key.

        Raises:
            FencedError: the attempt is not the current one any more; nothing was filed.
        """
        statement, values = self._statement(key, title, body)
        deadline = time.monotonic() + self._patience_seconds
        pauses = iter(_RETRY_SECONDS)
        pause = 0.0
        while True:
            try:
                return await self._attempt(statement, values)
            except DatabaseUnreachableError as error:
                pause = next(pauses, pause)
                if time.monotonic() + pause > deadline:
                    raise
                logger.warning("tracker unreachable", extra={"action": "file_issue", "reason": str(error)})
            await asyncio.sleep(pause)

    def _statement(self, key: str | None, title: str, body: str) -> tuple[str, Mapping[str, Any]]:
        issue = {"title": title, "body": body}
        attempt, call_id = CURRENT_ATTEMPT.get(), INSIDE_CALL.get()
        if key is None or attempt is None or not call_id:
            return _FILE, {**issue, "key": key or f"unkeyed/{uuid4()}", "run_id": self._run_id}
        return _FILE_IN_CALL, {
            **issue,
            "key": key,
            "serial": attempt.serial,
            "token": attempt.token,
            "call_id": call_id,
        }

    async def _attempt(self, statement: str, values: Mapping[str, Any]) -> Filed:
        # Its import is not for a process that has yet to claim.
        from sqlalchemy import text

        from triage_contract.database.engine import open_engine, translated

        engine = open_engine(self._url, application="triage-tracker", pool_size=1)
        try:
            with translated(self._url):
                async with asyncio.timeout(ATTEMPT_SECONDS), engine.begin() as connection:
                    number, duplicate = (await connection.execute(text(statement), values)).one()
        finally:
            await engine.dispose()
        return Filed(number=number, duplicate=duplicate)
