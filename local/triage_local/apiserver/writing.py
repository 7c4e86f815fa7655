"""Creating, changing and deleting objects by the rules that all resources share."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from triage_local.apiserver import exceptions
from triage_local.apiserver.deleting import DeleteOptions, check_preconditions, marked
from triage_local.apiserver.exceptions import BadRequestError, ForbiddenError
from triage_local.apiserver.field_errors import FieldError, forbidden, invalid_value
from triage_local.apiserver.objects import (
    Json,
    generated_name,
    metadata,
    name_of,
    namespace_of,
    timestamp,
    uid_of,
    with_metadata,
)
from triage_local.apiserver.resources import Resource
from triage_local.apiserver.store import Key, Store
from triage_local.apiserver.strategies.base import taking_status_from
from triage_local.apiserver.typed_schemas import MisfitError

NAMESPACES: Final = ("", "namespaces")
_SERVER_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "selfLink",
)
"""Metadata that clients cannot set."""
_MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """How a write is meant. ``warnings`` collects what to tell the client although the write succeeds."""

    dry_run: bool = False
    field_validation: str = "Warn"
    """What to do with unknown fields: ``Ignore``, ``Warn`` or ``Strict``."""
    manager: str = ""
    """The client's name for itself, by which server-side apply tells what it owns."""
    warnings: list[str] = field(default_factory=list)


class Writer:
    """Writes objects. Each method stores the whole change, or raises an ApiError and stores nothing."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, resource: Resource, key: Key) -> Json:
        """The stored object; NotFoundError if it is not there."""
        found = self._store.get(resource.table, key)
        if found is None:
            raise exceptions.not_found(resource.group, resource.plural, key[1])
        return found

    def create(self, resource: Resource, namespace: str, sent: Json, options: WriteOptions) -> Json:
        """Store a new object and return it."""
        obj = self._decoded(resource, sent, options)
        meta = {key: value for key, value in metadata(obj).items() if key not in _SERVER_FIELDS}
        if meta.get("namespace", namespace) != namespace:
            raise BadRequestError(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if resource.namespaced:
            self._require_active(namespace)
            meta["namespace"] = namespace
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = generated_name(str(meta["generateName"]))
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": timestamp()}
        if resource.strategy.has_generation:
            meta["generation"] = 1
        named = resource.taken({**obj, "metadata": meta})
        created = resource.strategy.created(named)
        self._refuse(resource, created, resource.strategy.errors(created, None))
        if self._store.get(resource.table, (namespace_of(created), name_of(created))) is not None:
            raise exceptions.already_exists(resource.group, resource.plural, name_of(created))
        if options.dry_run or resource.strategy.transient:
            return created
        return self._store.put(resource.table, created)

    def update(
        self,
        resource: Resource,
        key: Key,
        change: Callable[[Json], Json],
        options: WriteOptions,
        *,
        subresource: str = "",
        replaces: bool = False,
    ) -> Json:
        """Put what ``change`` makes of the object in its place, and return it.

        ``change`` gets and returns the object in the shape of the resource's version. With the subresources
        ``status`` and ``resize`` only what they are for is taken from it. ``replaces``: the object is sent as a whole,
        not as a patch.
        """
        old = self.read(resource, key)
        sent = self._decoded(resource, change(resource.shown(old)), options)
        self._check_identity(resource, old, sent, replaces)
        strategy = resource.strategy
        taken = resource.taken(sent)
        if subresource == "status":
            new = taking_status_from(taken, old)
            errors = strategy.status_errors(new, old)
        elif subresource == "resize":
            new = strategy.resized(taken, old)
            errors = strategy.resize_errors(new, old)
        else:
            kept = {name: metadata(old)[name] for name in _SERVER_FIELDS if name in metadata(old)}
            fields = {name: value for name, value in metadata(taken).items() if name not in _SERVER_FIELDS}
            new = {**taken, "metadata": {**fields, **kept}}
            if strategy.has_status:
                new = taking_status_from(old, new)
            new = strategy.updated(new, old)
            errors = [*_finalizer_errors(new, old), *strategy.errors(new, old)]
        self._refuse(resource, new, errors)
        if strategy.has_generation and _generation_part(new, strategy.has_status) != _generation_part(
            old, strategy.has_status
        ):
            new = with_metadata(new, generation=int(metadata(old).get("generation", 0)) + 1)
        return self.store(resource, new, options)

    def store(self, resource: Resource, new: Json, options: WriteOptions | None = None) -> Json:
        """Put a changed object in its place, and complete its deletion if nothing holds it back any more.

        Nothing is written when nothing changed.
        """
        key = (namespace_of(new), name_of(new))
        if (options is not None and options.dry_run) or new == self._store.get(resource.table, key):
            return new
        if metadata(new).get("deletionTimestamp") and _released(resource, new):
            return self._store.remove(resource.table, key, new)
        return self._store.put(resource.table, new)

    def delete(self, resource: Resource, key: Key, options: DeleteOptions) -> tuple[Json, bool]:
        """Delete the object or begin to, and say what it last was and whether it is gone."""
        obj = self.read(resource, key)
        check_preconditions(resource, obj, options)
        marked_obj = marked(resource, obj, options)
        gone = _released(resource, marked_obj)
        if options.dry_run:
            return obj, gone
        if gone and not resource.strategy.graceful:
            return self._store.remove(resource.table, key), True
        # An object that can stay is marked even if it goes at once: watches see both.
        if marked_obj != obj:
            marked_obj = self._store.put(resource.table, marked_obj)
        return (self._store.remove(resource.table, key), True) if gone else (marked_obj, False)

    def _decoded(self, resource: Resource, sent: Json, options: WriteOptions) -> Json:
        if not isinstance(sent.get("metadata") or {}, dict):
            raise BadRequestError("metadata must be an object")
        self._check_kind(resource, sent)
        try:
            decoded, unknown = resource.strategy.decoded(sent)
        except MisfitError as error:
            raise BadRequestError(f"{_unreadable(resource)}: {error}") from error
        if unknown and options.field_validation == "Strict":
            listed = ", ".join(f'unknown field "{path}"' for path in sorted(unknown))
            raise BadRequestError(f"{_unreadable(resource)}: strict decoding error: {listed}")
        if options.field_validation == "Warn":
            options.warnings.extend(f'unknown field "{path}"' for path in unknown)
        return decoded

    def _check_kind(self, resource: Resource, sent: Json) -> None:
        version, kind = sent.get("apiVersion"), sent.get("kind")
        if resource.custom:
            for field_name, value in (("Kind", kind), ("apiVersion", version)):
                if not value:
                    raise BadRequestError(
                        f"the object provided is unrecognized (must be of type {resource.kind}): "
                        f"Object '{field_name}' is missing"
                    )
        if version and version != resource.api_version:
            raise BadRequestError(
                f"the API version in the data ({version}) does not match the expected API version "
                f"({resource.api_version})"
            )
        if kind and kind != resource.kind:
            if resource.custom:
                self._refuse(resource, sent, [invalid_value("kind", kind, f"must be {resource.kind}")])
            raise BadRequestError(
                f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
            )

    def _require_active(self, namespace: str) -> None:
        found = self._store.get(NAMESPACES, ("", namespace))
        if found is None:
            raise exceptions.not_found("", "namespaces", namespace)
        if metadata(found).get("deletionTimestamp"):
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
            }
            raise ForbiddenError(message, details={"causes": [{**cause, "field": "metadata.namespace"}]})

    def _refuse(self, resource: Resource, obj: Json, errors: list[FieldError]) -> None:
        if errors:
            raise exceptions.invalid(resource.group, resource.kind, name_of(obj), errors)

    def _check_identity(self, resource: Resource, old: Json, sent: Json, replaces: bool) -> None:
        name = name_of(old)
        if name_of(sent) != name:
            raise BadRequestError(
                f"the name of the object ({name_of(sent)}) does not match the name on the URL ({name})"
            )
        if namespace_of(sent) not in ("", namespace_of(old)):
            raise BadRequestError("the namespace of the object does not match the namespace on the URL")
        if uid_of(sent) not in ("", uid_of(old)):
            if not replaces:
                immutable = invalid_value("metadata.uid", uid_of(sent), "field is immutable")
                self._refuse(resource, old, [immutable])
            why = (
                f"Precondition failed: UID in precondition: {uid_of(sent)}, UID in object meta: {uid_of(old)}"
            )
            raise exceptions.conflict(resource.group, resource.plural, name, why)
        version = metadata(sent).get("resourceVersion")
        if version and version != metadata(old)["resourceVersion"]:
            raise exceptions.conflict(resource.group, resource.plural, name, _MODIFIED)
        if not version and replaces and not resource.strategy.unconditional_update:
            detail = "must be specified for an update"
            self._refuse(resource, old, [invalid_value("metadata.resourceVersion", 0, detail)])


def _unreadable(resource: Resource) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def _released(resource: Resource, obj: Json) -> bool:
    """Whether nothing holds a deleted object back."""
    meta = metadata(obj)
    return not (
        meta.get("finalizers") or meta.get("deletionGracePeriodSeconds") or resource.strategy.held(obj)
    )


def _finalizer_errors(new: Json, old: Json) -> list[FieldError]:
    if not metadata(old).get("deletionTimestamp"):
        return []
    before = metadata(old).get("finalizers") or []
    added = [name for name in metadata(new).get("finalizers") or [] if name not in before]
    if not added:
        return []
    listed = "[]string{" + ", ".join(f'"{name}"' for name in added) + "}"
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
    return [forbidden("metadata.finalizers", detail)]


def _generation_part(obj: Json, has_status: bool) -> dict[str, Any]:
    left_out = ("metadata", "status") if has_status else ("metadata",)
    return {key: value for key, value in obj.items() if key not in left_out}
