"""Deletions: what a client may ask for, and how an object is marked that does not go at once."""

from dataclasses import dataclass

from triage_local.apiserver import exceptions
from triage_local.apiserver.objects import Json, metadata, name_of, shifted, timestamp, uid_of, with_metadata
from triage_local.apiserver.resources import Resource

_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
"""By propagation policy, the finalizer with which the garbage collector holds the object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How a deletion is meant. None: the client did not say."""

    grace_seconds: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


def check_preconditions(resource: Resource, obj: Json, options: DeleteOptions) -> None:
    """Raise ConflictError if the client means another object, or another state of it."""
    for label, asked, found, hint in (
        ("UID", options.uid, uid_of(obj), "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata(obj)["resourceVersion"], "modified"),
    ):
        if asked and asked != found:
            why = (
                f"the {label} in the precondition ({asked}) does not match the {label} in record ({found}). "
                f"The object might have been {hint}"
            )
            raise exceptions.conflict(resource.group, resource.kind, name_of(obj), why)


def marked(resource: Resource, obj: Json, options: DeleteOptions) -> Json:
    """The object with the time of its end. A second deletion can only bring that forward."""
    meta = metadata(obj)
    finalizers = list(meta.get("finalizers") or [])
    held_by = _FINALIZERS.get(options.propagation or "")
    if held_by and held_by not in finalizers:
        finalizers.append(held_by)
    began, given = meta.get("deletionTimestamp"), int(meta.get("deletionGracePeriodSeconds") or 0)
    asked = options.grace_seconds
    if began is None:
        seconds = resource.strategy.grace_seconds(obj, asked)
        due = shifted(timestamp(), seconds)
    else:
        seconds = given if asked is None else min(asked, given)
        due = shifted(began, seconds - given)
    generation = meta.get("generation")
    marked = with_metadata(
        obj,
        deletionTimestamp=due,
        deletionGracePeriodSeconds=seconds,
        generation=generation + 1 if began is None and generation else generation,
        finalizers=finalizers or None,
    )
    return resource.strategy.terminating(marked)
