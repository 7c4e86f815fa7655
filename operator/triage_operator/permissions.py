"""What the operator may do, and has to be allowed to do: ``check`` asks for it, and the roles grant it."""

from typing import Final, NamedTuple

from triage_contract.names import GROUP


class Permission(NamedTuple):
    """One thing to do with one resource. ``group`` empty: the core group."""

    verb: str
    group: str
    resource: str


PERMISSIONS: Final = tuple(
    Permission(verb, group, resource)
    for group, resource, verbs in (
        (GROUP, "triageruns", ("get", "list", "watch", "delete")),
        (GROUP, "triageruns/status", ("update",)),
        (GROUP, "triageagents", ("get", "list", "watch")),
        (GROUP, "triageagents/status", ("update",)),
        ("", "pods", ("get", "list", "watch", "create", "delete")),
        ("", "pods/resize", ("patch",)),
        ("", "events", ("create",)),
    )
    for verb in verbs
)
"""In every watched namespace."""

NODE_PERMISSIONS: Final = tuple(Permission(verb, "", "nodes") for verb in ("list", "watch"))
"""In the cluster; without them a node that is about to go is left only when its pods are evicted."""

IDENTITY_PERMISSION: Final = Permission("get", "", "namespaces")
"""On the namespace ``kube-system`` alone, whose UID tells this cluster from others; without it, set a cluster id."""

LEASE_PERMISSIONS: Final = tuple(
    Permission(verb, "coordination.k8s.io", "leases") for verb in ("get", "create", "update")
)
"""In the operator's own namespace, on its own Lease."""
