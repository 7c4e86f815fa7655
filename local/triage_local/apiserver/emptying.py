"""Deletions that wait until a namespace, or the resource that a definition made, has no object left."""

from typing import Final

from triage_local.apiserver.deleting import DeleteOptions
from triage_local.apiserver.objects import Json, metadata, name_of, namespace_of, with_metadata
from triage_local.apiserver.resources import Catalogue
from triage_local.apiserver.store import Key, Store, Table, Write
from triage_local.apiserver.strategies.definitions import FINALIZER
from triage_local.apiserver.writing import NAMESPACES, Writer

DEFINITIONS: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
PODS: Final = ("", "pods")


class Emptier:
    """Deletes what is in a terminating namespace or of a terminating definition, then lets that go."""

    def __init__(self, store: Store, catalogue: Catalogue, writer: Writer) -> None:
        self._store = store
        self._catalogue = catalogue
        self._writer = writer

    def settle(self, write: Write) -> None:
        """Do what follows from a write."""
        if write.table == NAMESPACES:
            self._empty_namespace(write.key[1])
        elif write.table == DEFINITIONS:
            self._empty_definition(write.key[1])
        elif write.current is None:
            group, plural = write.table
            self._empty_definition(f"{plural}.{group}")
            if write.key[0]:
                self._empty_namespace(write.key[0])

    def _empty_namespace(self, name: str) -> None:
        namespace = self._terminating(NAMESPACES, name)
        resource = self._catalogue.first(NAMESPACES)
        if namespace is None or resource is None:
            return
        # Pods go before what they may still need (KEP 5080).
        others = [table for table in self._store.tables() if table not in (NAMESPACES, PODS)]
        if self._delete_all(PODS, name) == 0 and sum(self._delete_all(table, name) for table in others) == 0:
            self._writer.store(resource, {**namespace, "spec": {**namespace["spec"], "finalizers": []}})

    def _empty_definition(self, name: str) -> None:
        definition = self._terminating(DEFINITIONS, name)
        resource = self._catalogue.first(DEFINITIONS)
        if definition is None or resource is None:
            return
        spec = definition["spec"]
        if not self._delete_all((spec["group"], spec["names"]["plural"]), None):
            rest = [entry for entry in metadata(definition).get("finalizers") or [] if entry != FINALIZER]
            self._writer.store(resource, with_metadata(definition, finalizers=rest or None))

    def _terminating(self, table: Table, name: str) -> Json | None:
        obj = self._store.get(table, ("", name))
        return obj if obj is not None and metadata(obj).get("deletionTimestamp") else None

    def _delete_all(self, table: Table, namespace: str | None) -> int:
        """Delete the objects of a table, and say how many of them are not gone yet."""
        resource = self._catalogue.first(table)
        if resource is None:
            return 0
        left = 0
        for obj in self._store.objects(table, namespace=namespace):
            key: Key = (namespace_of(obj), name_of(obj))
            gone = False
            if not metadata(obj).get("deletionTimestamp"):
                _, gone = self._writer.delete(resource, key, DeleteOptions())
            left += not gone
        return left
