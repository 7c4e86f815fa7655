"""The chart's roles grant what the operator's own list of permissions says, and nothing more."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from support.charts import NAMESPACE, render
from support.rights import Rights, granted, used
from triage_contract.names import GROUP
from triage_operator.permissions import (
    IDENTITY_PERMISSION,
    LEASE_PERMISSIONS,
    NODE_PERMISSIONS,
    PERMISSIONS,
    Permission,
)


def _anywhere(permissions: Iterable[Permission]) -> Rights:
    return {(each, ()) for each in permissions}


_OPERATOR: Final = f"system:serviceaccount:{NAMESPACE}:triage-operator"
_IDENTITY: Rights = {(IDENTITY_PERMISSION, ("kube-system",))}


def test_an_operator_of_all_namespaces_may_do_in_all_of_them_what_it_does() -> None:
    role = render().one("ClusterRole", f"{NAMESPACE}-triage-operator")
    assert granted(role) == _anywhere((*PERMISSIONS, *NODE_PERMISSIONS)) | _IDENTITY


def test_an_operator_of_some_namespaces_has_no_rights_in_others() -> None:
    rendered = render({"watchNamespaces": ["docs", "support"], "clusterId": "blue"})
    assert granted(rendered.one("ClusterRole", f"{NAMESPACE}-triage-operator")) == _anywhere(NODE_PERMISSIONS)
    roles = {
        each["metadata"]["namespace"]: each
        for each in rendered.of("Role")
        if each["metadata"]["namespace"] != NAMESPACE
    }
    assert roles.keys() == {"docs", "support"}
    for role in roles.values():
        assert granted(role) == _anywhere(PERMISSIONS)


def test_the_operator_may_touch_its_own_lease_alone() -> None:
    rendered = render()
    rights = granted(rendered.one("Role", "triage-operator-lease"))
    assert {permission for permission, _ in rights} == set(LEASE_PERMISSIONS)
    # Who creates has no name yet that a rule could ask for.
    assert {names for permission, names in rights if permission.verb != "create"} == {("triage-operator",)}
    (operator,) = rendered.pods()["Deployment/triage-operator"]["containers"]
    assert {"name": "TRIAGE_OPERATOR_LEASE_NAME", "value": "triage-operator"} in operator["env"]


def test_every_role_is_bound_to_the_operators_account_alone() -> None:
    rendered = render({"watchNamespaces": ["docs"]})
    bindings = [*rendered.of("ClusterRoleBinding"), *rendered.of("RoleBinding")]
    bound = {(each["metadata"].get("namespace"), each["roleRef"]["name"]) for each in bindings}
    assert bound == {
        (None, f"{NAMESPACE}-triage-operator"),
        ("docs", f"{NAMESPACE}-triage-operator"),
        (NAMESPACE, "triage-operator-lease"),
    }
    account = {"kind": "ServiceAccount", "name": "triage-operator", "namespace": NAMESPACE}
    assert all(each["subjects"] == [account] for each in bindings)


def test_viewers_see_runs_and_agents_and_editors_change_them() -> None:
    rendered = render()
    verbs = {
        role: {permission.verb for permission, _ in granted(rendered.one("ClusterRole", name))}
        for role in ("view", "edit")
        for name in [f"{NAMESPACE}-triage-operator-{role}"]
    }
    assert verbs == {"view": {"get", "list", "watch"}, "edit": {"create", "update", "patch", "delete"}}


def test_an_audit_log_tells_what_the_operator_used() -> None:
    log = [
        _audited("get", {"resource": "pods", "namespace": "docs", "name": "a"}),
        _audited("update", {"resource": "triageruns", "apiGroup": GROUP, "subresource": "status"}),
        _audited("get", None),
        _audited("list", {"resource": "secrets"}, decision="forbid"),
        _audited("delete", {"resource": "pods"}, user="somebody-else"),
        _audited("create", {"resource": "pods"}, at="2026-05-01T11:59:59.999999Z"),
    ]
    assert used(log, _OPERATOR, since=datetime.fromisoformat("2026-05-01T12:00:00Z")) == {
        Permission("get", "", "pods"),
        Permission("update", GROUP, "triageruns/status"),
    }


def _audited(
    verb: str,
    reference: dict[str, str] | None,
    *,
    user: str = _OPERATOR,
    decision: str = "allow",
    at: str = "2026-05-01T12:00:00.000000Z",
) -> str:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "verb": verb,
        "requestReceivedTimestamp": at,
        "user": {"username": user},
        "annotations": {"authorization.k8s.io/decision": decision},
        **({} if reference is None else {"objectRef": {"apiVersion": "v1", **reference}}),
    }
    return json.dumps(event)
