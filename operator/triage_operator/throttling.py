"""A client-side limit on requests, so that a restart with many runs does not flood the API server."""

import asyncio


class Throttle:
    """Lets ``burst`` requests through at once, then ``per_second``.

    A token bucket, kept as the time at which the next token would be there if none were saved up.
    """

    def __init__(self, *, per_second: float, burst: int) -> None:
        self._interval = 1.0 / per_second
        self._tolerance = self._interval * (burst - 1)
        self._next = 0.0

    async def take(self) -> None:
        """Wait until one more request may go out. Places are given in the order of the calls."""
        now = asyncio.get_running_loop().time()
        place = max(self._next, now)
        self._next = place + self._interval
        delay = place - self._tolerance - now
        if delay > 0:
            await asyncio.sleep(delay)
