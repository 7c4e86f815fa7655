"""One connection of its own: advisory locks, LISTEN, and statements in between."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Self

import asyncpg

from triage_contract.database.connecting import connect_directly, translated
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import LIFE_LOCK_CLASS, Channel

_TRY_LOCK: Final = "SELECT pg_try_advisory_lock($1, $2)"
# Whoever else holds it is no process of the attempt: advisory locks are open to every role.
_IS_HELD: Final = (
    "SELECT FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND s.usename = session_user"
    " AND l.database = s.datid AND l.classid::bigint = $1 AND l.objid::bigint = $2"
)
COMMAND_TIMEOUT_SECONDS: Final = 10.0


class DirectConnection:
    """A session of its own with Postgres, for one task at a time.

    Each method raises DatabaseUnreachableError where the connection is gone; it does not come back, open another.
    """

    def __init__(self, connection: asyncpg.Connection, url: DatabaseUrl) -> None:
        self._connection = connection
        self._url = url

    @classmethod
    async def open(cls, url: DatabaseUrl, *, application: str) -> Self:
        """Connect; ``application`` is what other backends see as ``application_name``.

        Where there is only a way through a transaction pooler, that is taken: statements work, locks and LISTEN do not.

        Raises:
            DatabaseUnreachableError: nobody answers.
        """
        return cls(await connect_directly(url, application=application), url)

    async def fetch_one(self, statement: str, *args: Any) -> Mapping[str, Any] | None:
        """Run a statement with ``$1`` parameters; None: it gave no row."""
        with translated(self._url):
            row = await self._connection.fetchrow(statement, *args, timeout=COMMAND_TIMEOUT_SECONDS)
            return None if row is None else dict(row)

    async def try_life_lock(self, serial: int) -> bool:
        """Take the lock that says "the process of this attempt lives", held until the connection ends.

        Returns False where another connection holds it.
        """
        row = await self.fetch_one(_TRY_LOCK, LIFE_LOCK_CLASS, serial)
        return row is not None and bool(row["pg_try_advisory_lock"])

    async def is_life_lock_held(self, serial: int) -> bool:
        """Say whether a connection of the same role holds the lock of an attempt."""
        return await self.fetch_one(_IS_HELD, LIFE_LOCK_CLASS, serial) is not None

    async def listen(self, channel: Channel, heard: Callable[[str], None]) -> None:
        """Call ``heard`` with the payload of each notification on a channel, in the connection's event loop."""

        def on_notification(_connection: Any, _pid: int, _channel: str, payload: object) -> None:
            heard(str(payload))

        with translated(self._url):
            await self._connection.add_listener(channel, on_notification)

    def on_lost(self, lost: Callable[[], None]) -> None:
        """Call ``lost`` once when the connection ends, whoever ended it."""
        self._connection.add_termination_listener(lambda _connection: lost())

    async def close(self) -> None:
        """End the session, and with it its locks and subscriptions."""
        with translated(self._url):
            await self._connection.close(timeout=COMMAND_TIMEOUT_SECONDS)
