"""Statements that are prepared once and take one round trip, or none that anybody waits for."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from triage_contract.database.connecting import connect, translated
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import Pooler

AT_ONCE: Final = 8192
"""Characters that the socket takes at once. Nothing is left in it: the server answered all that came before."""


class PreparedConnection:
    """One connection, opened at its first use, and again once the last one is gone. Each statement is a transaction.

    Behind a transaction pooler nothing stays prepared. A statement during which the connection breaks is not repeated:
    nobody knows whether it had its effect.
    """

    def __init__(self, url: DatabaseUrl, *, application: str) -> None:
        self._url = url
        self._application = application
        self._connection: asyncpg.Connection | None = None
        self._prepared: set[str] = set()
        self._one_at_a_time = asyncio.Lock()
        self._running = 0
        self._posted: asyncio.Task[list[Mapping[str, Any]]] | None = None

    async def fetch(self, statement: str, *args: Any) -> list[Mapping[str, Any]]:
        """Run a statement with ``$1`` parameters; JSON goes in and comes out as text.

        Raises:
            DatabaseUnreachableError: nobody answers.
            FencedError and its like: what our functions say, of this statement or of one that was posted before.
        """
        await self._arrival()
        return await self._run(statement, *args)

    async def post(self, statement: str, *args: Any) -> None:
        """Send a statement, and do not wait for its answer: the next one does, and raises what comes of both.

        When this returns, the statement is out of this process's hands, whose death does not take it back.
        """
        await self._arrival()
        if not self._leaves_at_once(statement, args):
            await self._run(statement, *args)
            return
        self._posted = asyncio.create_task(self._run(statement, *args))
        # It is written to the socket in the task's first step.
        await asyncio.sleep(0)

    async def close(self) -> None:
        """End the connection, if there is one; what runs on it is broken off."""
        connection, self._connection = self._connection, None
        if self._posted is not None:
            # Whoever cared for what comes of it has waited for it.
            await asyncio.gather(self._posted, return_exceptions=True)
        if connection is not None:
            connection.terminate()

    def _leaves_at_once(self, statement: str, args: tuple[Any, ...]) -> bool:
        """Say whether a statement is written to the socket, as a whole, before anything is waited for."""
        is_open = self._connection is not None and not self._connection.is_closed()
        size = sum(len(arg) for arg in args if isinstance(arg, str))
        return is_open and self._running == 0 and statement in self._prepared and size <= AT_ONCE

    async def _arrival(self) -> None:
        # Of several that wait for one, the first may have posted another by the time that the second goes on.
        while (posted := self._posted) is not None:
            try:
                await asyncio.shield(posted)
            finally:
                if self._posted is posted and posted.done():
                    self._posted = None

    async def _run(self, statement: str, *args: Any) -> list[Mapping[str, Any]]:
        self._running += 1
        try:
            with translated(self._url):
                async with self._one_at_a_time:
                    return await self._fetch(statement, *args)
        finally:
            self._running -= 1

    async def _fetch(self, statement: str, *args: Any) -> list[Mapping[str, Any]]:
        if self._connection is None or self._connection.is_closed():
            self._prepared.clear()
            self._connection = await connect(self._url, application=self._application)
        rows: list[Mapping[str, Any]] = await self._connection.fetch(statement, *args)
        if self._url.pooler is Pooler.NONE:
            self._prepared.add(statement)
        return rows
