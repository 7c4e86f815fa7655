"""Watches: a stream of JSON lines each, from a version on, through selectors."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from triage_local.apiserver.exceptions import ApiError, ExpiredError
from triage_local.apiserver.objects import Json, with_metadata
from triage_local.apiserver.resources import Resource
from triage_local.apiserver.selectors import Predicate
from triage_local.apiserver.store import Change, Store, Write

DEFAULT_TIMEOUT_SECONDS: Final = 1800.0
"""How long a watch lasts whose client does not say. A real server draws 30 to 60 minutes."""
BOOKMARK_SECONDS: Final = 60.0
"""Time between two bookmarks, as on a real server."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark after which a streamed list is complete."""


class Fault(Enum):
    """What can befall an open watch."""

    CUT = auto()
    """The connection breaks."""
    FREEZE = auto()
    """Nothing is sent any more, and the connection stays."""
    TRUNCATE = auto()
    """The stream ends in the middle of the line of the next event."""


class CutError(Exception):
    """The connection is to be broken, not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """What a client wants to see.

    ``version`` None or 0: all objects that are there, then what happens. ``initial_events``: those too, and
    a bookmark behind them. ``target`` is path and query, by which faults find the watch.
    """

    resource: Resource
    namespace: str | None
    selected: Predicate
    rendered: Callable[[Json], Json]
    version: int | None
    timeout_seconds: float
    bookmarks: bool
    initial_events: bool
    target: str


class Watch:
    """One open watch."""

    def __init__(self, store: Store, request: WatchRequest) -> None:
        self.request = request
        self._store = store
        self._queue: asyncio.Queue[Write | ApiError | Fault] = asyncio.Queue()

    def push(self, item: Write | ApiError | Fault) -> None:
        """Let a write, a last error or a fault follow what is in the stream."""
        self._queue.put_nowait(item)

    def initial(self) -> Iterator[bytes]:
        """The lines of the objects that are there, if the client wants them."""
        request = self.request
        if request.version and not request.initial_events:
            return
        for obj in self._store.objects(request.resource.table, namespace=request.namespace):
            if request.selected(obj):
                yield self._line(Change.ADDED, obj)
        if request.initial_events:
            yield self._bookmark({INITIAL_EVENTS_END: "true"})

    async def following(self, bookmark_seconds: float) -> AsyncIterator[bytes]:
        """The lines of what happens, until the client's time is over. CutError breaks the connection."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self.request.timeout_seconds
        frozen = truncated = False
        while True:
            wake = min(end, loop.time() + bookmark_seconds)
            try:
                async with asyncio.timeout_at(None if frozen else wake):
                    item = await self._queue.get()
            except TimeoutError:
                if self.request.bookmarks:
                    yield self._bookmark()
                if loop.time() >= end:
                    return
                continue
            if item is Fault.CUT:
                raise CutError
            if frozen:
                continue
            if isinstance(item, ApiError):
                yield _encoded({"type": "ERROR", "object": item.status()})
                return
            if isinstance(item, Fault):
                frozen, truncated = frozen or item is Fault.FREEZE, truncated or item is Fault.TRUNCATE
                continue
            line = self._event(item)
            if line is None:
                continue
            if truncated:
                yield line[: len(line) // 2]
                return
            yield line

    def _event(self, write: Write) -> bytes | None:
        """The line of a write as this watch sees it; None: it does not."""
        if self.request.namespace not in (None, write.key[0]):
            return None
        was = write.previous is not None and self.request.selected(write.previous)
        if write.current is not None and self.request.selected(write.current):
            return self._line(Change.MODIFIED if was else Change.ADDED, write.last)
        if not was:
            return None
        if write.current is None:
            return self._line(Change.DELETED, write.last)
        # An object that is not selected any more looks deleted, as it was before.
        assert write.previous is not None
        return self._line(Change.DELETED, with_metadata(write.previous, resourceVersion=str(write.version)))

    def _line(self, change: Change, obj: Json) -> bytes:
        return _encoded({"type": change, "object": self.request.rendered(obj)})

    def _bookmark(self, annotations: Json | None = None) -> bytes:
        resource = self.request.resource
        meta: Json = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if annotations:
            meta["annotations"] = annotations
        shown = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        return _encoded({"type": "BOOKMARK", "object": shown})


def _encoded(event: Json) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


class Watches:
    """The open watches of a server, each of which gets the writes to its table."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: set[Watch] = set()
        self._lost_versions: set[int] = set()
        self._began = 0
        self.deleted_to_lose: Counter[str] = Counter()
        """How many of the next deletions no watch will see, by the plural of the resource."""
        store.listen(self._dispatch)

    def __iter__(self) -> Iterator[Watch]:
        return iter(list(self._open))

    def begin_anew(self) -> None:
        """Be able to go on from no version before this one, as a server that has just been started."""
        self._began = self._store.version

    @contextmanager
    def opened(self, request: WatchRequest) -> Iterator[Watch]:
        """A watch that gets what happened since its version, and what happens until the block ends."""
        watch = Watch(self._store, request)
        if request.version and not request.initial_events:
            try:
                if request.version < self._began:
                    raise ExpiredError(f"too old resource version: {request.version} ({self._began})")
                past = self._store.since(request.version)
            except ExpiredError as error:
                past = []
                watch.push(error)
            for write in past:
                if write.table == request.resource.table and write.version not in self._lost_versions:
                    watch.push(write)
        self._open.add(watch)
        try:
            yield watch
        finally:
            self._open.discard(watch)

    def _dispatch(self, write: Write) -> None:
        if write.change is Change.DELETED and self.deleted_to_lose[write.table[1]] > 0:
            self.deleted_to_lose[write.table[1]] -= 1
            self._lost_versions.add(write.version)
            return
        for watch in self._open:
            if watch.request.resource.table == write.table:
                watch.push(write)
