"""Server-side apply: an object becomes what a manager wants of it, and loses what that manager wanted before.

Conflicts between managers are not found, and ``metadata.managedFields`` is not kept: the last apply wins.
"""

from typing import Any

from triage_local.apiserver import exceptions
from triage_local.apiserver.exceptions import BadRequestError
from triage_local.apiserver.field_errors import required
from triage_local.apiserver.objects import Json, uid_of, with_metadata
from triage_local.apiserver.options import Target
from triage_local.apiserver.patching import MERGE_KEYS, merge_patched, strategic_merged
from triage_local.apiserver.store import Store
from triage_local.apiserver.writing import WriteOptions, Writer


class Applier:
    """Applies configurations, and remembers the last one of each manager for each object."""

    def __init__(self, store: Store, writer: Writer) -> None:
        self._store = store
        self._writer = writer
        self._applied: dict[tuple[str, str], Json] = {}

    def apply(self, target: Target, wanted: Any, options: WriteOptions) -> tuple[Json, bool]:
        """The object after the apply, and whether that made it."""
        if not options.manager:
            error = required("fieldManager", "is required for apply patch")
            raise exceptions.invalid("meta.k8s.io", "PatchOptions", "", [error])
        if not isinstance(wanted, dict):
            raise BadRequestError("the body must be an object")
        resource = target.resource
        if self._store.get(resource.table, target.key) is None:
            named = with_metadata(wanted, name=target.name)
            obj, made = self._writer.create(resource, target.namespace or "", named, options), True
        else:
            merged = merge_patched if resource.custom else strategic_merged

            def change(old: Json) -> Json:
                before = self._applied.get((uid_of(old), options.manager), {})
                result: Json = merged(_withdrawn(old, before, wanted), wanted)
                return result

            obj, made = (
                self._writer.update(resource, target.key, change, options, subresource=target.subresource),
                False,
            )
        if not options.dry_run:
            self._applied[uid_of(obj), options.manager] = wanted
        return obj, made


def _withdrawn(obj: Json, before: Json, wanted: Json) -> Json:
    """The object without what was wanted before and is not wanted now; what others put beside it stays."""
    kept = dict(obj)
    for field, old in before.items():
        if field not in kept:
            continue
        new, found = wanted.get(field), kept[field]
        if isinstance(old, dict) and isinstance(found, dict):
            kept[field] = _withdrawn(found, old, new if isinstance(new, dict) else {})
            if not kept[field] and field not in wanted:
                del kept[field]
        elif isinstance(old, list) and isinstance(found, list) and field in MERGE_KEYS:
            key = MERGE_KEYS[field][0]
            gone = {entry.get(key) for entry in old} - {entry.get(key) for entry in new or []}
            kept[field] = [entry for entry in found if entry.get(key) not in gone]
        elif field not in wanted:
            del kept[field]
    return kept
