"""Boundaries: the places between two steps where an attempt can stop and leave nothing half done."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Final

INSIDE_CALL: Final = ContextVar("triage_inside_call", default="")
"""Key of the tool call that the current code is part of; empty: of none. An agent may itself be a tool."""


class Gate:
    """Lets steps through until it is shut, and tells when the run can be left.

    A step is a tool call or a model call. One that comes to a shut gate waits for the process to end. Those inside
    a tool call are part of it and always pass. One event loop.
    """

    def __init__(self) -> None:
        self._shut = asyncio.Event()
        self._at_boundary = asyncio.Event()
        self._calls_ended = asyncio.Event()
        self._calls: set[object] = set()
        self._questions: set[object] = set()
        self._is_holding = False

    @property
    def is_shut(self) -> bool:
        """Whether no further step begins."""
        return self._shut.is_set()

    def shut(self) -> None:
        """Let no further step begin."""
        self._shut.set()
        self._tell()

    async def enter_call(self) -> Callable[[], None]:
        """Begin a tool call. Returns what ends it; the end of the current task does so, too."""
        return await self._enter(self._calls)

    async def enter_question(self) -> Callable[[], None]:
        """Begin a model call. Returns what ends it; the end of the current task does so, too."""
        return await self._enter(self._questions)

    async def stillness(self, patience_seconds: float) -> None:
        """Wait until the gate is shut and the run can be left.

        Best at a boundary, where a step is held and none is under way. A run that comes to none, such as one that waits
        for its model, is given ``patience_seconds``: a model can be asked again. Tool calls are waited for in any case.
        """
        await self._shut.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await self._at_boundary.wait()
        await self._calls_ended.wait()

    async def _enter(self, steps: set[object]) -> Callable[[], None]:
        if INSIDE_CALL.get():
            return lambda: None
        if self._shut.is_set():
            self._is_holding = True
            self._tell()
            await asyncio.Event().wait()
        step = object()
        steps.add(step)

        def end(_task: object = None) -> None:
            steps.discard(step)
            self._tell()

        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(end)
        return end

    def _tell(self) -> None:
        if self._shut.is_set() and not self._calls:
            self._calls_ended.set()
            if self._is_holding and not self._questions:
                self._at_boundary.set()
