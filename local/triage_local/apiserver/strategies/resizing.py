"""The subresource ``resize`` of pods: what it may change, and what it refuses. Pure.

After ResizeStrategy and ValidatePodResize of a kube-apiserver of 1.34.
"""

from collections.abc import Iterator
from typing import Any, Final

from triage_local.apiserver.field_errors import FieldError, forbidden, invalid_value
from triage_local.apiserver.objects import Json

_CONTAINERS: Final = ("containers", "initContainers")
_RESIZABLE: Final = ("cpu", "memory")


def resized(new: Json, old: Json) -> Json:
    """The old pod with the resources of the new one's containers, where those are the same containers."""
    spec = dict(old["spec"])
    for field in _CONTAINERS:
        before, after = spec.get(field) or [], new["spec"].get(field) or []
        if not _same(before, after):
            spec[field] = after
        elif before:
            spec[field] = [
                {**one, "resources": other.get("resources") or {}}
                for one, other in zip(before, after, strict=True)
            ]
    return {**old, "spec": spec}


def resize_errors(new: Json, old: Json, quality: str) -> Iterator[FieldError]:
    """What is wrong with a resized pod, whose quality of service would be ``quality``."""
    if quality != old["status"]["qosClass"]:
        detail = "Pod QOS Class may not change as a result of resizing"
        yield invalid_value("spec", old["status"]["qosClass"], detail)
    if not _is_supported(old):
        yield forbidden("spec", "Pod running on node without support for resize")
    for field in _CONTAINERS:
        before, after = old["spec"].get(field) or [], new["spec"].get(field) or []
        if len(before) != len(after):
            yield forbidden(f"spec.{field}", f"{field} may not be added or removed on resize")
            return
        if not _same(before, after):
            yield forbidden(f"spec.{field}[0].name", f"{field} may not be renamed or reordered on resize")
            return
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _container_errors(
                f"spec.{field}[{place}].resources", other["resources"], one["resources"]
            )


def _container_errors(path: str, new: Json, old: Json) -> Iterator[FieldError]:
    for amounts in ("requests", "limits"):
        before, after = old.get(amounts) or {}, new.get(amounts) or {}
        if before.keys() - after.keys():
            yield forbidden(f"{path}.{amounts}", f"resource {amounts} cannot be removed")
        fixed = (before.keys() | after.keys()) - set(_RESIZABLE)
        if any(before.get(name) != after.get(name) for name in fixed):
            yield forbidden("spec", "only cpu and memory resources are mutable")


def _same(before: list[Json], after: list[Json]) -> bool:
    return [each.get("name") for each in before] == [each.get("name") for each in after]


def _is_supported(pod: Json) -> bool:
    """Whether the kubelet says of a running container what it gives it, as one does that can change it."""
    statuses: list[dict[str, Any]] = pod["status"].get("containerStatuses") or []
    running = [status for status in statuses if "running" in (status.get("state") or {})]
    return not running or "resources" in running[0]
