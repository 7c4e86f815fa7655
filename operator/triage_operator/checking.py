"""Checking: whether everything that the operator needs is there, without changing anything."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from triage_contract.database.migrating import check_schema
from triage_contract.database.prepared import PreparedConnection
from triage_contract.exceptions import TriageError
from triage_operator.kube import Kube
from triage_operator.permissions import LEASE_PERMISSIONS, NODE_PERMISSIONS, PERMISSIONS, Permission
from triage_operator.resources import AGENTS, RUNS
from triage_operator.settings import DatabaseSettings, KubeSettings, LeaseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, and what is wrong with it; None: nothing."""

    what: str
    fault: str | None


async def check_database(settings: DatabaseSettings) -> Finding:
    """See that the database answers and has the schema of this version."""
    try:
        url = settings.locate()
        connection = PreparedConnection(url, application="triage-check")
        try:
            await check_schema(connection, url)
        finally:
            await connection.close()
    except TriageError as error:
        return Finding(what="database and schema", fault=str(error))
    return Finding(what="database and schema", fault=None)


async def check_cluster(
    settings: KubeSettings, lease: LeaseSettings, namespaces: tuple[str, ...]
) -> AsyncIterator[Finding]:
    """See that the API server answers, serves our resources, and lets us do what we have to."""
    try:
        async with Kube.connect(settings) as kube:
            missing = {RUNS, AGENTS} - await kube.served_resources()
            fault = f"missing: {', '.join(sorted(missing))}; apply what `triage-operator crds` prints"
            yield Finding(what="API server", fault=None)
            yield Finding(what="custom resource definitions", fault=fault if missing else None)
            for namespace in namespaces or (None,):
                denied = [one for one in PERMISSIONS if not await kube.allowed(*one, namespace)]
                where = "all namespaces" if namespace is None else f"namespace {namespace}"
                yield Finding(what=f"permissions in {where}", fault=_denied(denied))
            denied = [one for one in NODE_PERMISSIONS if not await kube.allowed(*one, None)]
            yield Finding(what="permissions on nodes", fault=_denied(denied))
            denied = [
                one
                for one in LEASE_PERMISSIONS
                if not await kube.allowed(*one, lease.namespace, name=lease.name)
            ]
            yield Finding(what=f"permissions on leases in namespace {lease.namespace}", fault=_denied(denied))
    except TriageError as error:
        yield Finding(what="API server", fault=str(error))


def _denied(permissions: list[Permission]) -> str | None:
    if not permissions:
        return None
    return "not allowed: " + ", ".join(
        f"{verb} {resource}{'.' if group else ''}{group}" for verb, group, resource in permissions
    )
