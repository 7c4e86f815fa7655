"""A keyed, level-triggered work queue: what the reconciles wait in.

A key says only that something about it may have changed. However often it is woken before its turn, it is
worked on once; woken while it is worked on, it is worked on once more afterwards; and never by two workers at
once.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class WorkQueue(Generic[Key]):
    """Keys that wait for a worker, now or from a later time on."""

    def __init__(self) -> None:
        self._ready: deque[Key] = deque()
        self._waiting: set[Key] = set()
        self._active: set[Key] = set()
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._more = asyncio.Event()

    def __len__(self) -> int:
        """Give the number of keys whose turn has come and that no worker has taken yet."""
        return len(self._ready)

    def __contains__(self, key: Key) -> bool:
        """Say whether the key will be worked on without another wake, now or later."""
        return key in self._waiting or key in self._again or key in self._timers

    def wake(self, key: Key) -> None:
        """Have the key worked on as soon as a worker is free."""
        self._cancel_timer(key)
        if key in self._active:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._more.set()

    def wake_after(self, key: Key, seconds: float) -> None:
        """Have the key worked on in a while. This replaces an earlier such wish; a wake makes it void."""
        if seconds <= 0:
            self.wake(key)
        elif key not in self._waiting and key not in self._again:
            self._cancel_timer(key)
            self._timers[key] = asyncio.get_running_loop().call_later(seconds, self.wake, key)

    def clear(self) -> None:
        """Forget every key that no worker has taken."""
        for key in tuple(self._timers):
            self._cancel_timer(key)
        self._ready.clear()
        self._waiting.clear()
        self._again.clear()

    async def work(self, task: Callable[[Key], Awaitable[None]], *, workers: int) -> None:
        """Run ``task`` for one key after the other, at most ``workers`` at once, until cancelled.

        An exception of ``task`` ends all workers and is raised.
        """
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(task))

    async def _work(self, task: Callable[[Key], Awaitable[None]]) -> None:
        while True:
            while not self._ready:
                self._more.clear()
                await self._more.wait()
            key = self._ready.popleft()
            self._waiting.discard(key)
            self._active.add(key)
            try:
                await task(key)
            finally:
                self._active.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.wake(key)

    def _cancel_timer(self, key: Key) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
