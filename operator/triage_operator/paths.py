"""Paths of the API server."""

from urllib.parse import quote

from triage_contract.names import GROUP, VERSION


def core(namespace: str | None, *parts: str) -> str:
    """Give the path of a resource of the core group; namespace None: in all of them."""
    return _path("/api/v1", namespace, parts)


def ours(namespace: str | None, *parts: str) -> str:
    """Give the path of one of our resources."""
    return _path(f"/apis/{GROUP}/{VERSION}", namespace, parts)


def lease(namespace: str, *parts: str) -> str:
    """Give the path of the Leases of a namespace, or of one."""
    return _path("/apis/coordination.k8s.io/v1", namespace, ("leases", *parts))


def _path(root: str, namespace: str | None, parts: tuple[str, ...]) -> str:
    scope = () if namespace is None else ("namespaces", namespace)
    return "/".join((root, *(quote(part, safe="") for part in (*scope, *parts))))


def resource_of(path: str) -> str:
    """Give what a path leads to: the resource's plural name, and a subresource behind a slash; no object's name."""
    _, kind, *rest = path.split("/")
    scoped = rest[1:] if kind == "api" else rest[2:]
    if scoped[:1] == ["namespaces"] and len(scoped) > 2:
        scoped = scoped[2:]
    return "/".join(scoped[::2])
