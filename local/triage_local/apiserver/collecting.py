"""Garbage collection by owner references, as the controller manager does it."""

from collections import defaultdict
from typing import Final

from triage_local.apiserver.deleting import DeleteOptions
from triage_local.apiserver.objects import Json, metadata, namespace_of, uid_of, with_metadata
from triage_local.apiserver.resources import Catalogue
from triage_local.apiserver.store import Key, Store, Table, Write
from triage_local.apiserver.writing import Writer

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


class Collector:
    """Deletes what has lost all its owners, and completes deletions that wait for dependents."""

    def __init__(self, store: Store, catalogue: Catalogue, writer: Writer) -> None:
        self._store = store
        self._catalogue = catalogue
        self._writer = writer
        self._places: dict[str, tuple[Table, Key]] = {}
        self._dependents: defaultdict[str, set[tuple[Table, Key]]] = defaultdict(set)

    def note(self, write: Write) -> None:
        """Keep in mind where every UID is and who owns whom."""
        place = (write.table, write.key)
        if write.previous is not None:
            self._places.pop(uid_of(write.previous), None)
            for owner in _owner_uids(write.previous):
                self._dependents[owner].discard(place)
        if write.current is not None:
            self._places[uid_of(write.current)] = place
            for owner in _owner_uids(write.current):
                self._dependents[owner].add(place)

    def settle(self, write: Write) -> None:
        """Do what follows from a write."""
        if write.current is not None:
            self._collect(write.table, write.key)
            self._complete(write.table, write.key)
            return
        for place in sorted(self._dependents.pop(uid_of(write.last), ())):
            self._collect(*place)
        for owner in _owner_uids(write.last):
            if owner in self._places:
                self._complete(*self._places[owner])

    def _collect(self, table: Table, key: Key) -> None:
        """Delete an object whose owners are all gone; if some are, drop the references to those."""
        obj, resource = self._store.get(table, key), self._catalogue.first(table)
        owners = metadata(obj).get("ownerReferences") if obj is not None else None
        if obj is None or resource is None or not owners:
            return
        present = [owner for owner in owners if self._present(owner, obj)]
        if present and len(present) < len(owners):
            self._writer.store(resource, with_metadata(obj, ownerReferences=present))
        elif not present and not metadata(obj).get("deletionTimestamp"):
            self._writer.delete(resource, key, DeleteOptions(uid=uid_of(obj)))

    def _present(self, owner: Json, obj: Json) -> bool:
        """Whether the owner is where the reference can mean it: in the object's namespace or in none."""
        place = self._places.get(owner["uid"])
        return place is not None and place[1][0] in ("", namespace_of(obj))

    def _complete(self, table: Table, key: Key) -> None:
        """Go on with a deletion that waits for its dependents."""
        obj, resource = self._store.get(table, key), self._catalogue.first(table)
        if obj is None or resource is None or not metadata(obj).get("deletionTimestamp"):
            return
        finalizers = list(metadata(obj).get("finalizers") or [])
        dependents = sorted(self._dependents.get(uid_of(obj), ()))
        if ORPHAN in finalizers:
            for place in dependents:
                self._disown(*place, uid_of(obj))
            finalizers.remove(ORPHAN)
        elif FOREGROUND in finalizers:
            if any(self._delete_dependent(*place, uid_of(obj)) for place in dependents):
                return
            finalizers.remove(FOREGROUND)
        else:
            return
        self._writer.store(resource, with_metadata(obj, finalizers=finalizers or None))

    def _disown(self, table: Table, key: Key, owner: str) -> None:
        obj, resource = self._store.get(table, key), self._catalogue.first(table)
        if obj is not None and resource is not None:
            rest = [entry for entry in metadata(obj)["ownerReferences"] if entry["uid"] != owner]
            self._writer.store(resource, with_metadata(obj, ownerReferences=rest or None))

    def _delete_dependent(self, table: Table, key: Key, owner: str) -> bool:
        """Delete a dependent, in the foreground too, and say whether its owner has to wait for it."""
        obj, resource = self._store.get(table, key), self._catalogue.first(table)
        if obj is None or resource is None:
            return False
        if not metadata(obj).get("deletionTimestamp"):
            _, gone = self._writer.delete(resource, key, DeleteOptions(propagation="Foreground"))
            if gone:
                return False
        references = [entry for entry in metadata(obj)["ownerReferences"] if entry["uid"] == owner]
        return any(entry.get("blockOwnerDeletion") for entry in references)


def _owner_uids(obj: Json) -> list[str]:
    return [str(owner["uid"]) for owner in metadata(obj).get("ownerReferences") or []]
