"""What a controller manager does for the objects themselves, beside the requests."""

import asyncio

from triage_local.apiserver.collecting import Collector
from triage_local.apiserver.definitions import resources_of
from triage_local.apiserver.emptying import DEFINITIONS, Emptier
from triage_local.apiserver.resources import Catalogue
from triage_local.apiserver.store import Store, Write
from triage_local.apiserver.writing import Writer


class Controllers:
    """Follows every write: serves definitions at once, collects and empties in the background."""

    def __init__(self, store: Store, catalogue: Catalogue, writer: Writer) -> None:
        self._catalogue = catalogue
        self._collector = Collector(store, catalogue, writer)
        self._emptier = Emptier(store, catalogue, writer)
        self._writes: asyncio.Queue[Write] = asyncio.Queue()
        store.listen(self._note)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            write = await self._writes.get()
            self._collector.settle(write)
            self._emptier.settle(write)

    def _note(self, write: Write) -> None:
        self._collector.note(write)
        if write.table == DEFINITIONS:
            spec = write.last["spec"]
            served = resources_of(write.current) if write.current is not None else []
            self._catalogue.replace(spec["group"], spec["names"]["plural"], served)
        self._writes.put_nowait(write)
