"""What the server says of itself: versions, groups, resources."""

from collections.abc import Iterable
from typing import Final

from triage_local.apiserver.objects import Json
from triage_local.apiserver.resources import Catalogue, Resource

VERSION: Final[Json] = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0-triage-local",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The Kubernetes version whose behaviour is emulated; kubectl compares its own with it."""

_SUBRESOURCE_VERBS: Final = {
    "binding": ("create",),
    "eviction": ("create",),
    "finalize": ("update",),
    "log": ("get",),
    "resize": ("get", "patch", "update"),
    "status": ("get", "patch", "update"),
}
_SUBRESOURCE_KINDS: Final[dict[str, Json]] = {
    "binding": {"kind": "Binding"},
    "eviction": {"kind": "Eviction", "group": "policy", "version": "v1"},
}


def core_versions() -> Json:
    """Answer of ``/api``."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(catalogue: Catalogue) -> Json:
    """Answer of ``/apis``."""
    names = sorted({resource.group for resource in catalogue if resource.group})
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name, catalogue) for name in names]}


def group(name: str, catalogue: Catalogue) -> Json | None:
    """Answer of ``/apis/<group>``; None: there is no such group."""
    if not any(resource.group == name for resource in catalogue):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, catalogue)}


def _group(name: str, catalogue: Catalogue) -> Json:
    versions = sorted({resource.version for resource in catalogue if resource.group == name}, key=_priority)
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _priority(version: str) -> tuple[bool, bool, str]:
    """Stable versions before betas before alphas."""
    return ("alpha" in version, "beta" in version, version)


def resources(group_name: str, version: str, catalogue: Catalogue) -> Json | None:
    """Answer of ``/api/v1`` and ``/apis/<group>/<version>``; None: there is no such version."""
    found = [r for r in catalogue if (r.group, r.version) == (group_name, version)]
    if not found:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": list(_entries(found)),
    }


def _entries(found: Iterable[Resource]) -> Iterable[Json]:
    for resource in found:
        entry: Json = {
            "name": resource.plural,
            "singularName": resource.singular or resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(resource.verbs),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        yield entry
        for name in resource.subresources:
            yield {
                "name": f"{resource.plural}/{name}",
                "singularName": "",
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                **_SUBRESOURCE_KINDS.get(name, {}),
                "verbs": list(_SUBRESOURCE_VERBS[name]),
            }
