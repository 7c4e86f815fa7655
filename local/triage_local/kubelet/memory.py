"""Memory limits: a look at the resident memory of each container, many times a second."""

import asyncio
import logging
import signal
from collections.abc import Callable

from triage_local.kubelet.containers import Container

_logger = logging.getLogger(__name__)

# To find a container's processes costs a walk over all those of the machine, to read their memory does not.
_TREE_EVERY = 10


class MemoryLimits:
    """Kills a container whose processes together hold more than its limit, all of them at once."""

    def __init__(self, poll_seconds: float) -> None:
        self._poll_seconds = poll_seconds
        self._limits: dict[Container, Callable[[], int | None]] = {}

    def watch(self, container: Container, limit: Callable[[], int | None]) -> None:
        """Keep a container to its limit until it ends.

        Args:
            container: Just started.
            limit: Gives the limit in bytes, asked for each time, since it can be changed in place.
        """
        self._limits[container] = limit

    async def run(self) -> None:
        """Look again and again; never returns."""
        looks = 0
        while True:
            for container, limit in list(self._limits.items()):
                if not container.alive:
                    del self._limits[container]
                elif (bound := limit()) is not None:
                    if looks % _TREE_EVERY == 0:
                        container.look_at_tree()
                    if (used := container.resident_bytes()) > bound:
                        container.out_of_memory = True
                        container.signal_tree(signal.SIGKILL)
                        extra = {"pid": container.pid, "used_bytes": used, "limit_bytes": bound}
                        _logger.info("Killed a container over its memory limit", extra=extra)
            looks += 1
            await asyncio.sleep(self._poll_seconds)
