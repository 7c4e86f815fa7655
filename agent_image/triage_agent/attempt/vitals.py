"""Signs of life: a thread that holds the attempt's lock, sends its heartbeat, and hears what is asked of it.

A thread of its own with an event loop of its own, since a tool may block the run's.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

import psutil

from triage_agent.attempt.settings import AttemptSettings
from triage_agent.attempt.tail import Tail
from triage_contract.database.direct import DirectConnection
from triage_contract.exceptions import AlreadyClaimedError, DatabaseUnreachableError, FencedError, TriageError
from triage_contract.names import SCARCE_MEMORY, Channel

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 2.0
"""How long the end of the process waits for the end of the connection."""

MEMORY_LOOK_SECONDS: Final = 0.1
"""Between two looks at the process's memory: it can grow a lot from one heartbeat to the next."""

MEMORY_STEP: Final = 1 / 16
"""Share of the memory limit by which a heartbeat may be behind where memory is scarce."""

_SERIAL: Final = "SELECT triage.serial_of($1, $2) AS serial"
_HEARTBEAT: Final = "SELECT * FROM triage.heartbeat($1, $2, $3, $4, $5)"


class Vitals(threading.Thread):
    """Runs from before the claim to the end of the process.

    The lines of ``tail`` go with the heartbeats. ``on_handoff`` is called with the reason once a hand-off is asked for,
    ``on_fenced`` once the attempt is not the current one any more; both in this thread, and perhaps again with each
    heartbeat.
    """

    def __init__(
        self,
        settings: AttemptSettings,
        *,
        tail: Tail,
        on_handoff: Callable[[str], None],
        on_fenced: Callable[[], None],
    ) -> None:
        super().__init__(name="triage-vitals", daemon=True)
        self._settings = settings
        self._tail = tail
        self._untold: str | None = None
        self._on_handoff = on_handoff
        self._on_fenced = on_fenced
        self._serial: Future[int] = Future()
        self._process = psutil.Process()
        self._loop = asyncio.new_event_loop()
        self._beat = asyncio.Event()
        self._has_lock = False
        self._told_bytes = 0
        self._sigterm = False
        self._stopping = False

    def serial(self) -> int:
        """Wait for the attempt's serial; the lock is held then, where there is a way past the pooler.

        Raises:
            FencedError: the database knows no such attempt.
            AlreadyClaimedError: a live process of the same attempt holds the lock.
            DatabaseUnreachableError: nobody answers.
            SchemaError: the database lacks our functions.
        """
        return self._serial.result()

    def tell_sigterm(self) -> None:
        """Note in the attempt's row, at once, that the process was asked to end. Safe in a signal handler."""
        self._sigterm = True
        self._wake()

    def stop(self) -> None:
        """End the thread, and with it the lock; waits for it a moment."""
        self._stopping = True
        self._wake()
        self.join(timeout=STOP_SECONDS)

    def run(self) -> None:
        """Live; the thread's body."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                runner.run(self._live())
            except TriageError as error:
                if self._serial.done():
                    logger.error("signs of life ended", extra=self._facts(error))
                else:
                    self._serial.set_exception(error)
            finally:
                if not self._serial.done():  # nobody may wait for it for ever
                    reason = f"no signs of life at {self._settings.database}"
                    self._serial.set_exception(DatabaseUnreachableError(reason))

    async def _live(self) -> None:
        connection = await self._connect()
        try:
            serial = await self._find(connection)
            if not await self._lock(connection, serial) and await connection.is_life_lock_held(serial):
                raise AlreadyClaimedError(f"another process of attempt {self._settings.epoch} is alive")
        except TriageError:
            await _close(connection)
            raise
        self._serial.set_result(serial)
        while True:
            try:
                await self._beats(connection, serial)
                break
            except DatabaseUnreachableError as error:
                logger.warning("heartbeat failed", extra=self._facts(error))
            # Only the end of its connection frees the lock for the next one.
            await _close(connection)
            if (reconnected := await self._reconnect()) is None:
                return
            connection = reconnected
        await _close(connection)

    async def _beats(self, connection: DirectConnection, serial: int) -> None:
        while not self._stopping:
            self._beat.clear()
            if not self._has_lock:
                # Postgres may hold it for a connection whose end it has not noticed, or somebody who has no business
                # with it.
                await self._lock(connection, serial)
            row = await self._tell(connection, serial)
            if row is None or not row["is_current"]:
                self._on_fenced()
            elif row["handoff_reason"] is not None:
                self._on_handoff(row["handoff_reason"])
            await self._pause()
        await self._tell(connection, serial)

    async def _tell(self, connection: DirectConnection, serial: int) -> Mapping[str, Any] | None:
        """Send a heartbeat, and the last lines where there are new ones."""
        self._untold = self._tail.news() or self._untold
        self._told_bytes = self._process.memory_info().rss
        row = await connection.fetch_one(
            _HEARTBEAT, serial, self._settings.token, self._told_bytes, self._sigterm, self._untold
        )
        self._untold = None
        return row

    async def _pause(self) -> None:
        """Wait for the next heartbeat's time, which comes at once where memory grows scarce: it may be the last."""
        due = self._loop.time() + self._settings.heartbeat_seconds
        while not self._beat.is_set() and (left := due - self._loop.time()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._beat.wait(), min(left, MEMORY_LOOK_SECONDS))
            used = self._process.memory_info().rss
            if self._is_news(used):
                self._told_bytes = used
                return

    def _is_news(self, used_bytes: int) -> bool:
        """Say whether memory has come where it is scarce since it was told, or grew there.

        The limit may be higher by now than the one that the process was started with, hence there is no last step.
        """
        limit = self._settings.memory_limit_bytes
        if limit is None or used_bytes < limit * SCARCE_MEMORY:
            return False
        is_new = self._told_bytes < limit * SCARCE_MEMORY
        return is_new or used_bytes - self._told_bytes >= limit * MEMORY_STEP

    async def _connect(self) -> DirectConnection:
        settings = self._settings
        connection = await DirectConnection.open(
            settings.database, application=f"triage-vitals/{settings.run_id}"
        )
        if settings.database.direct_dsn is not None:
            await connection.listen(Channel.HANDOFF, self._heard)
        connection.on_lost(self._beat.set)
        return connection

    async def _reconnect(self) -> DirectConnection | None:
        self._has_lock = False
        while not self._stopping:
            try:
                return await self._connect()
            except DatabaseUnreachableError:
                self._beat.clear()
                await self._pause()
        return None

    async def _lock(self, connection: DirectConnection, serial: int) -> bool:
        """Take the lock; without a way past the pooler there is none to take."""
        self._has_lock = self._settings.database.direct_dsn is None or await connection.try_life_lock(serial)
        return self._has_lock

    async def _find(self, connection: DirectConnection) -> int:
        settings = self._settings
        row = await connection.fetch_one(_SERIAL, settings.run_id, settings.epoch)
        if row is None or row["serial"] is None:
            raise FencedError(
                f"the database at {settings.database} knows no attempt {settings.epoch} of run {settings.run_id}"
            )
        return int(row["serial"])

    def _heard(self, payload: str) -> None:
        if self._serial.done() and payload == str(self._serial.result()):
            self._beat.set()

    def _facts(self, error: TriageError) -> dict[str, str]:
        return {"action": "heartbeat", "run": str(self._settings.run_id), "error": str(error)}

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._beat.set)


async def _close(connection: DirectConnection) -> None:
    with suppress(DatabaseUnreachableError):
        await connection.close()
