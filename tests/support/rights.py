"""What roles grant, and what an API server's audit log says was used of it."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from support.charts import Json
from triage_operator.permissions import Permission

Rights = set[tuple[Permission, tuple[str, ...]]]
"""Each with the names of the objects that it is restricted to; none: all."""


def granted(*roles: Json) -> Rights:
    """Give what roles grant."""
    return {
        (Permission(verb, group, resource), tuple(rule.get("resourceNames", ())))
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


_EVER: Final = datetime.min.replace(tzinfo=UTC)


def used(audit_log: Iterable[str], user: str, *, since: datetime = _EVER) -> set[Permission]:
    """Give what a user did with resources, and was allowed to, by the lines of an audit log.

    Its fields: https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1. Level ``Metadata`` is enough.
    """
    found = set()
    for line in audit_log:
        event = json.loads(line)
        reference = event.get("objectRef", {})
        allowed = event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow"
        if event["user"]["username"] != user or not allowed or "resource" not in reference:
            continue
        if datetime.fromisoformat(event["requestReceivedTimestamp"]) < since:
            continue
        subresource = f"/{reference['subresource']}" if "subresource" in reference else ""
        resource = f"{reference['resource']}{subresource}"
        found.add(Permission(event["verb"], reference.get("apiGroup", ""), resource))
    return found
