"""Boundaries: the places between two steps where an attempt can stop and leave nothing half done."""

import asyncio


class Gate:
    """Lets steps (a tool call, a model call) through until it is shut, and tells when none is under way any more.

    A step that comes to a shut gate waits for the process to end. One event loop.
    """

    def __init__(self) -> None:
        self._shut = asyncio.Event()
        self._still = asyncio.Event()
        self._under_way = 0
        self._held = 0

    @property
    def is_shut(self) -> bool:
        """Whether no further step begins."""
        return self._shut.is_set()

    def shut(self) -> None:
        """Let no further step begin."""
        self._shut.set()
        self._tell()

    async def enter(self) -> None:
        """Begin a step; waits for ever at a shut gate."""
        if self._shut.is_set():
            self._held += 1
            self._tell()
            await asyncio.Event().wait()
        self._under_way += 1

    def leave(self) -> None:
        """End a step."""
        self._under_way -= 1
        self._tell()

    async def stillness(self) -> None:
        """Wait until the gate is shut, holds a step, and no other is under way: the run stands at a boundary."""
        await self._still.wait()

    def _tell(self) -> None:
        if self._shut.is_set() and self._held and not self._under_way:
            self._still.set()
