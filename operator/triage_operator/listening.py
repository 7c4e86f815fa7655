"""What the database tells by itself: releases by notification, and signs of life by looking."""

import asyncio
import logging
import time
from collections.abc import Callable
from uuid import UUID

from triage_contract.database.direct import DirectConnection
from triage_contract.exceptions import DatabaseError
from triage_contract.names import Channel
from triage_operator.lives import Lives
from triage_operator.queueing import WorkQueue
from triage_operator.settings import DecidingSettings, ReconcilingSettings
from triage_operator.store import Store
from triage_operator.stored import RunKey

_logger = logging.getLogger(__name__)


class Listener:
    """Wakes a run at once when its attempt gives the fence up."""

    def __init__(self, store: Store, queue: WorkQueue[RunKey], settings: ReconcilingSettings) -> None:
        self._store = store
        self._queue = queue
        self._settings = settings

    async def work(self) -> None:
        """Listen until cancelled; what is missed while the connection is down, the next look sees."""
        url = self._store.url
        if url.direct_dsn is None:
            _logger.warning(
                "no direct database url: releases are noticed by looking", extra={"action": "listen"}
            )
            return
        while True:
            try:
                await self._listen()
            except DatabaseError as error:
                _logger.warning("not listening", extra={"action": "listen", "reason": str(error)})
            await asyncio.sleep(self._settings.reconnect_seconds)

    async def _listen(self) -> None:
        released: asyncio.Queue[str | None] = asyncio.Queue()
        connection = await DirectConnection.open(self._store.url, application="triage-operator/listen")
        try:
            connection.on_lost(lambda: released.put_nowait(None))
            await connection.listen(Channel.RELEASED, released.put_nowait)
            while (payload := await released.get()) is not None:
                await self._wake(payload)
        finally:
            await connection.close()

    async def _wake(self, run_id: str) -> None:
        try:
            key = await self._store.run_key(UUID(run_id))
        except ValueError:
            _logger.warning("a notification names no run", extra={"action": "listen"})
            return
        if key is not None:
            self._queue.wake(key)


class Looker:
    """Looks at the signs of life of all claimed attempts, and wakes those about which there is news."""

    def __init__(
        self,
        store: Store,
        queue: WorkQueue[RunKey],
        lives: Lives,
        settings: ReconcilingSettings,
        deciding: DecidingSettings,
        *,
        recovered: Callable[[], None],
    ) -> None:
        self._store = store
        self._queue = queue
        self._lives = lives
        self._recovered = recovered
        self._settings = settings
        self._deciding = deciding
        self._looked_at = time.monotonic()
        self.is_sighted = True
        """Whether the last look, if there was one, succeeded."""

    def age_seconds(self) -> float:
        """Say how long ago the last look succeeded; before the first one, how long ago this was made."""
        return time.monotonic() - self._looked_at

    async def work(self) -> None:
        """Look until cancelled, and call ``recovered`` when the database is back after it was out of reach."""
        while True:
            try:
                await self._look()
                if not self.is_sighted:
                    self._recovered()
                self.is_sighted = True
                await asyncio.sleep(self._settings.look_seconds)
            except DatabaseError as error:
                self.is_sighted = False
                self._lives.lose_sight()
                _logger.warning("cannot look", extra={"action": "look", "reason": str(error)})
                await asyncio.sleep(self._settings.reconnect_seconds)

    async def _look(self) -> None:
        look = await self._store.look(lapse_seconds=self._deciding.heartbeat_lapse_seconds)
        self._looked_at = time.monotonic()
        news = self._lives.take(look)
        if news:
            for key in await self._store.runs_of(news):
                self._queue.wake(key)
