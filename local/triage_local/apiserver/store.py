"""The objects of the cluster, and the history of their writes, each of which has a version of its own."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Final, TypeAlias

from triage_local.apiserver.exceptions import ExpiredError
from triage_local.apiserver.objects import Json, name_of, namespace_of, with_metadata

HISTORY_LENGTH: Final = 20_000
"""How many writes are remembered for watches and continue tokens. A real server remembers five minutes."""

Table: TypeAlias = tuple[str, str]
"""Group and plural of a resource: what its versions share."""
Key: TypeAlias = tuple[str, str]
"""Namespace (empty for a cluster-scoped object) and name."""


class Change(StrEnum):
    """What a write did, as watches call it."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write. ``current`` is None for a deletion, ``previous`` for a creation."""

    table: Table
    key: Key
    version: int
    change: Change
    current: Json | None
    previous: Json | None

    @property
    def last(self) -> Json:
        """The object after the write, or as it was when it was deleted, with the version of the deletion."""
        shown = self.current if self.current is not None else self.previous
        assert shown is not None
        return with_metadata(shown, resourceVersion=str(self.version))


class Store:
    """Objects by table, namespace and name. Not safe for threads: one event loop owns it."""

    def __init__(self, *, history_length: int = HISTORY_LENGTH) -> None:
        self._tables: dict[Table, dict[Key, Json]] = {}
        self._history: deque[Write] = deque(maxlen=history_length)
        self._listeners: list[Callable[[Write], None]] = []
        self._version = 1
        self._forgotten = 1

    @property
    def version(self) -> int:
        """The version of the last write."""
        return self._version

    def get(self, table: Table, key: Key) -> Json | None:
        """The object under this key, or None."""
        return self._tables.get(table, {}).get(key)

    def tables(self) -> list[Table]:
        """The tables that ever held an object."""
        return list(self._tables)

    def objects(self, table: Table, *, namespace: str | None = None, at: int | None = None) -> list[Json]:
        """The objects of a table in the order of their keys: of one namespace, as of a version, if given.

        Raises ExpiredError when that version is older than the history.
        """
        found = dict(self._tables.get(table, {}))
        if at is not None:
            for write in reversed(self.since(at)):
                if write.table != table:
                    continue
                if write.previous is None:
                    found.pop(write.key, None)
                else:
                    found[write.key] = write.previous
        return [found[key] for key in sorted(found) if namespace is None or key[0] == namespace]

    def put(self, table: Table, obj: Json) -> Json:
        """Store the object in place of the one under its key, and return it with its version."""
        key = (namespace_of(obj), name_of(obj))
        previous = self.get(table, key)
        stored = with_metadata(obj, resourceVersion=str(self._version + 1))
        self._tables.setdefault(table, {})[key] = stored
        self._record(table, key, Change.MODIFIED if previous else Change.ADDED, stored, previous)
        return stored

    def remove(self, table: Table, key: Key, last: Json | None = None) -> Json:
        """Take the object out and return it as watches see it. ``last`` replaces what they see, if given."""
        previous = self._tables[table].pop(key)
        return self._record(table, key, Change.DELETED, None, last or previous).last

    def since(self, version: int) -> list[Write]:
        """The writes after a version, oldest first. Raises ExpiredError if not all are remembered."""
        if version < self._forgotten:
            raise ExpiredError(f"too old resource version: {version} ({self._forgotten})")
        # Versions have no gaps, so the place of a write in the history follows from its version.
        start = max(0, len(self._history) - (self._version - version))
        return list(islice(self._history, start, None))

    def forget(self) -> None:
        """Drop the history, so that every earlier version is expired."""
        self._history.clear()
        self._forgotten = self._version

    def listen(self, listener: Callable[[Write], None]) -> Callable[[], None]:
        """Call the listener after each write, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _record(
        self, table: Table, key: Key, change: Change, current: Json | None, previous: Json | None
    ) -> Write:
        self._version += 1
        write = Write(
            table=table, key=key, version=self._version, change=change, current=current, previous=previous
        )
        if len(self._history) == self._history.maxlen:
            self._forgotten = self._history[0].version
        self._history.append(write)
        for listener in list(self._listeners):
            listener(write)
        return write
