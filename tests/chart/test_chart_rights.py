"""The chart's roles grant what the operator's own list of permissions says, and nothing more."""

from collections.abc import Iterable

from support.charts import NAMESPACE, Json, render
from triage_operator.permissions import (
    IDENTITY_PERMISSION,
    LEASE_PERMISSIONS,
    NODE_PERMISSIONS,
    PERMISSIONS,
    Permission,
)

Granted = set[tuple[Permission, tuple[str, ...]]]
"""Each with the names of the objects that it is restricted to; none: all."""


def _granted(*roles: Json) -> Granted:
    return {
        (Permission(verb, group, resource), tuple(rule.get("resourceNames", ())))
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _anywhere(permissions: Iterable[Permission]) -> Granted:
    return {(each, ()) for each in permissions}


_IDENTITY: Granted = {(IDENTITY_PERMISSION, ("kube-system",))}


def test_an_operator_of_all_namespaces_may_do_in_all_of_them_what_it_does() -> None:
    role = render().one("ClusterRole", f"{NAMESPACE}-triage-operator")
    assert _granted(role) == _anywhere((*PERMISSIONS, *NODE_PERMISSIONS)) | _IDENTITY


def test_an_operator_of_some_namespaces_has_no_rights_in_others() -> None:
    rendered = render({"watchNamespaces": ["docs", "support"], "clusterId": "blue"})
    assert _granted(rendered.one("ClusterRole", f"{NAMESPACE}-triage-operator")) == _anywhere(
        NODE_PERMISSIONS
    )
    roles = {
        each["metadata"]["namespace"]: each
        for each in rendered.of("Role")
        if each["metadata"]["namespace"] != NAMESPACE
    }
    assert roles.keys() == {"docs", "support"}
    for role in roles.values():
        assert _granted(role) == _anywhere(PERMISSIONS)


def test_the_operator_may_touch_its_own_lease_alone() -> None:
    rendered = render()
    granted = _granted(rendered.one("Role", "triage-operator-lease"))
    assert {permission for permission, _ in granted} == set(LEASE_PERMISSIONS)
    # Who creates has no name yet that a rule could ask for.
    assert {names for permission, names in granted if permission.verb != "create"} == {("triage-operator",)}
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
        role: {permission.verb for permission, _ in _granted(rendered.one("ClusterRole", name))}
        for role in ("view", "edit")
        for name in [f"{NAMESPACE}-triage-operator-{role}"]
    }
    assert verbs == {"view": {"get", "list", "watch"}, "edit": {"create", "update", "patch", "delete"}}
