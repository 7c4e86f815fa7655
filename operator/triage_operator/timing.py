"""How long the database takes for each statement."""

import time
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine

Answered = Callable[[str, float], None]


def time_statements(engine: AsyncEngine, operation: str | None, answered: Answered) -> None:
    """Call ``answered`` with the operation and the seconds of each statement that the database answered.

    ``operation`` None: ``read`` for what needs no transaction, else ``write``.
    """

    def begin(connection: Connection, *_: Any) -> None:
        connection.info["asked_at"] = time.perf_counter()

    def end(connection: Connection, *_: Any) -> None:
        reads = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
        answered(
            operation or ("read" if reads else "write"), time.perf_counter() - connection.info["asked_at"]
        )

    event.listen(engine.sync_engine, "before_cursor_execute", begin)
    event.listen(engine.sync_engine, "after_cursor_execute", end)
