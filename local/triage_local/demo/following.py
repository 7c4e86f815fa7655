"""Objects of the API server as they are now, and waiting for them to become what they should."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from triage_local.exceptions import PatienceError
from triage_local.kubelet.cluster import Cluster

PATIENCE_SECONDS: Final = 90.0

Json = dict[str, Any]
Found = TypeVar("Found")
Changed = Callable[[Json | None, Json], None]
"""Told an object as it was seen last (None: never) and as it is."""


class Followed:
    """The objects of one list by name, kept up to date while ``run`` runs."""

    def __init__(self, cluster: Cluster, path: str, changed: Changed) -> None:
        self._cluster = cluster
        self._path = path
        self._changed = changed
        self._stirred = asyncio.Event()
        self.objects: dict[str, Json] = {}

    async def run(self) -> None:
        """Follow the list; never returns."""
        await self._cluster.follow(self._path, synced=self._sync, changed=self._change)

    async def until(self, find: Callable[[Mapping[str, Json]], Found | None], what: str) -> Found:
        """Wait until something is found among the objects, and give it.

        Args:
            find: Looks for it; gives None where it is not there yet.
            what: Is waited for, in words.

        Raises:
            PatienceError: It does not come.
        """
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (found := find(self.objects)) is None:
                    self._stirred.clear()
                    await self._stirred.wait()
                return found
        except TimeoutError:
            raise PatienceError(f"waited {PATIENCE_SECONDS:.0f} s in vain: {what}") from None

    def _sync(self, objects: list[Json]) -> None:
        for obj in objects:
            self._note(obj)
        there = {obj["metadata"]["name"] for obj in objects}
        self.objects = {name: obj for name, obj in self.objects.items() if name in there}
        self._stirred.set()

    def _change(self, change: str, obj: Json) -> None:
        if change == "DELETED":
            self.objects.pop(obj["metadata"]["name"], None)
        else:
            self._note(obj)
        self._stirred.set()

    def _note(self, obj: Json) -> None:
        name = obj["metadata"]["name"]
        before, self.objects[name] = self.objects.get(name), obj
        self._changed(before, obj)
