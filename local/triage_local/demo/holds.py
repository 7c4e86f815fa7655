"""Holding a run at a place between two of its steps, so that it can be killed exactly there.

The places are statements that the agent sends anyway. A trigger, made in the demo's own database, lets the statement of
a chosen run wait for a lock that the demo holds; agent and operator know nothing of it.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from triage_local.demo.asking import until_true


class Place(StrEnum):
    """Where a run is held."""

    IN_TOOL = "in_tool"
    """In the middle of ``file_issue``: its call is journaled as begun, the tracker does not have the issue."""
    AFTER_WRITE = "after_write"
    """Issue and journal have what ``file_issue`` did; neither the agent nor its session knows."""


_LOCK_CLASS: Final = 0x64656D6F

_SET_UP: Final = (
    "CREATE SCHEMA IF NOT EXISTS demo",
    "CREATE TABLE IF NOT EXISTS demo.holds"
    " (number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text, place text)",
    f"""
    CREATE OR REPLACE FUNCTION demo.hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE
        held integer;
    BEGIN
        SELECT h.number INTO held FROM demo.holds h JOIN triage.runs r ON r.name = h.run
            WHERE h.place = TG_ARGV[0]
                AND (r.id::text = to_jsonb(NEW) ->> 'run_id' OR r.session_id = to_jsonb(NEW) ->> 'session_id');
        IF FOUND THEN
            PERFORM pg_advisory_xact_lock_shared({_LOCK_CLASS}, held);
        END IF;
        RETURN NEW;
    END $$
    """,
    f"CREATE OR REPLACE TRIGGER hold BEFORE INSERT ON triage.issues FOR EACH ROW"
    f" EXECUTE FUNCTION demo.hold('{Place.IN_TOOL}')",
    f"CREATE OR REPLACE TRIGGER hold BEFORE UPDATE ON triage.tool_calls FOR EACH ROW"
    f" WHEN (NEW.tool = 'file_issue' AND OLD.state = 'done' AND NEW.state = 'done')"
    f" EXECUTE FUNCTION demo.hold('{Place.AFTER_WRITE}')",
)
_ADD: Final = text("INSERT INTO demo.holds (run, place) VALUES (:run, :place) RETURNING number")
_REMOVE: Final = text("DELETE FROM demo.holds WHERE number = :number")
_LOCK: Final = text("SELECT pg_advisory_lock(:class, :number)")
_UNLOCK_ALL: Final = text("SELECT pg_advisory_unlock_all()")
_WAITERS: Final = (
    "FROM pg_locks WHERE locktype = 'advisory' AND classid = :class AND objid = :number AND objsubid = 2"
    " AND NOT granted"
)
_WAITING: Final = text(f"SELECT count(*) > 0 {_WAITERS}")
# Waits up to a second for each to be gone.
_END_WAITING: Final = text(f"SELECT pg_terminate_backend(pid, 1000) {_WAITERS}")


async def prepare(engine: AsyncEngine) -> None:
    """Make the triggers, in a migrated database that may have them; roles of agents need no rights for them."""
    async with engine.begin() as connection:
        for statement in _SET_UP:
            await connection.execute(text(statement))


@asynccontextmanager
async def holding(engine: AsyncEngine, run: str, place: Place) -> AsyncIterator["Hold"]:
    """Hold a run where it comes to a place, until it is let go or the block ends."""
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        number = (await connection.execute(_ADD, {"run": run, "place": place})).scalar_one()
        lock = {"class": _LOCK_CLASS, "number": number}
        await connection.execute(_LOCK, lock)
        try:
            yield Hold(engine, connection, lock, f"{run} comes to its {place.value} hold")
        finally:
            await connection.execute(_REMOVE, lock)
            # It goes back to a pool, which would keep its lock.
            await connection.execute(_UNLOCK_ALL)


class Hold:
    """One run at one place."""

    def __init__(
        self, engine: AsyncEngine, connection: AsyncConnection, lock: Mapping[str, int], coming: str
    ) -> None:
        self._engine = engine
        self._connection = connection
        self._lock = lock
        self._coming = coming

    async def reached(self) -> None:
        """Wait until the run is there.

        Raises:
            PatienceError: It does not come.
        """
        await until_true(self._engine, _WAITING, self._coming, **self._lock)

    async def release(self) -> None:
        """Let the run go on, and pass the place from now on."""
        await self._connection.execute(_UNLOCK_ALL)

    async def cut_off(self) -> None:
        """Take back the statement of a process that is dead, as if it had died before it could send it."""
        await self._connection.execute(_END_WAITING, self._lock)
        await self.release()
