"""Tenants: a database role for each namespace, which reaches the runs and sessions of that namespace alone.

What such a role may do is in the migration ``0002_tenants.sql``; here an administrator makes and removes it.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from triage_contract.database.engine import driver_error, open_engine, translated
from triage_contract.database.url import DatabaseUrl
from triage_operator.exceptions import TenantError

MAX_ROLE_BYTES: Final = 63
"""Length of Postgres's names; it cuts longer ones without an error."""

_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SCRAM_ITERATIONS: Final = 4096
"""As many as Postgres takes itself; the password is random, and no longer to guess with more of them."""

_ADMIT: Final = text("SELECT triage.admit_tenant(:role, :namespace, :verifier, :rotate, :connection_limit)")
_END_CONNECTIONS: Final = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = :role")
_BAR: Final = text("SELECT triage.bar_tenant(:namespace)")
_REMOVE: Final = text("SELECT triage.remove_tenant(:namespace)")
_TENANTS: Final = text(
    "SELECT t.namespace, t.role, coalesce(r.rolconnlimit, -1) AS connection_limit,"
    " (SELECT count(*) FROM pg_stat_activity s WHERE s.usename = t.role) AS connections"
    " FROM triage.tenants t LEFT JOIN pg_roles r ON r.rolname = t.role ORDER BY t.namespace, t.role"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A role and its namespace. ``connection_limit`` None: as many connections as the server has."""

    namespace: str
    role: str
    connection_limit: int | None
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A tenant's role, and the URLs with its password, secrets; None: the password is the one that it had.

    ``direct_url`` goes past a pooler; None: there is no other way than ``url``.
    """

    role: str
    url: str | None = field(repr=False)
    direct_url: str | None = field(repr=False)


def role_name(namespace: str) -> str:
    """Give the role of a namespace: ``triage_<namespace>``, a hash for its end where too long."""
    name = f"triage_{namespace}"
    if len(name) <= MAX_ROLE_BYTES:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MAX_ROLE_BYTES - len(digest) - 1]}-{digest}"


async def add(
    url: DatabaseUrl, namespace: str, *, role: str | None, connection_limit: int | None, rotate: bool
) -> Admission:
    """Make the role of a namespace, or bring the one that it has up to date.

    Args:
        url: the database, as an administrator reaches it.
        namespace: the namespace's name.
        role: name of the role; None: ``role_name``.
        connection_limit: most connections at once; None: as it is, without one where the role is new.
        rotate: give it a new password and end its connections: whoever knew the old one may hold some.

    Raises:
        TenantError: no namespace's name, a role's that is too long or taken, or the rights do not suffice.
        DatabaseUnreachableError, SchemaError: see ``translated``.
    """
    role = role or role_name(namespace)
    if not _NAMESPACE.fullmatch(namespace):
        raise TenantError(f"{namespace!r} is no name of a namespace")
    if len(role.encode()) > MAX_ROLE_BYTES:
        raise TenantError(f"a role's name has at most {MAX_ROLE_BYTES} bytes")
    password = secrets.token_urlsafe(24)
    wanted = {
        "role": role,
        "namespace": namespace,
        "verifier": scram_verifier(password, secrets.token_bytes(16)),
        "rotate": rotate,
        "connection_limit": connection_limit,
    }
    async with _administering(url) as connection:
        is_set = await connection.scalar(_ADMIT, wanted)
        if rotate:
            # Only now does the server refuse the old password.
            await connection.commit()
            await connection.execute(_END_CONNECTIONS, {"role": role})
    if not is_set:
        return Admission(role=role, url=None, direct_url=None)
    direct = url.direct_dsn if url.direct_dsn != url.dsn else None
    return Admission(
        role=role,
        url=_with_login(url.dsn, role, password),
        direct_url=None if direct is None else _with_login(direct, role, password),
    )


async def remove(url: DatabaseUrl, namespace: str) -> tuple[str, ...]:
    """Drop the roles of a namespace, end their connections, and give their names. What is stored stays.

    Raises:
        TenantError: it has none, or the rights do not suffice.
        DatabaseUnreachableError, SchemaError: see ``translated``.
    """
    async with _administering(url) as connection:
        await connection.execute(_BAR, {"namespace": namespace})
        await connection.commit()
        roles = tuple((await connection.execute(_REMOVE, {"namespace": namespace})).scalars())
    if not roles:
        raise TenantError(f"namespace {namespace} is no tenant")
    return roles


async def tenants(url: DatabaseUrl) -> tuple[Tenant, ...]:
    """Read all tenants, by namespace.

    Raises:
        TenantError: the rights do not suffice.
        DatabaseUnreachableError, SchemaError: see ``translated``.
    """
    async with _administering(url) as connection:
        rows = (await connection.execute(_TENANTS)).all()
    return tuple(
        Tenant(
            namespace=row.namespace,
            role=row.role,
            connection_limit=None if row.connection_limit < 0 else row.connection_limit,
            connections=row.connections,
        )
        for row in rows
    )


def build_secret(name: str, namespace: str, admission: Admission) -> Mapping[str, Any]:
    """Build the Secret of a tenant's URLs, for its TriageAgents to refer to."""
    urls = {"url": admission.url, "direct-url": admission.direct_url}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "stringData": {key: value for key, value in urls.items() if value is not None},
    }


def scram_verifier(password: str, salt: bytes) -> str:
    """Give what Postgres keeps of a password, so that the password itself is in no statement and no log.

    The format is that of https://www.postgresql.org/docs/current/catalog-pg-authid.html, the keys those of RFC 5802.
    ``password`` is ASCII, which SASLprep leaves as it is.
    """
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, _SCRAM_ITERATIONS)
    stored_key = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    encoded = (base64.b64encode(part).decode() for part in (salt, stored_key, server_key))
    return "SCRAM-SHA-256${}:{}${}:{}".format(_SCRAM_ITERATIONS, *encoded)


@asynccontextmanager
async def _administering(url: DatabaseUrl) -> AsyncIterator[AsyncConnection]:
    direct = DatabaseUrl.parse(url.direct_dsn or url.dsn)
    engine = open_engine(direct, application="triage-tenants", pool_size=1)
    try:
        with translated(direct):
            async with engine.connect() as connection:
                yield connection
                await connection.commit()
    except DBAPIError as error:
        # What `translated` leaves is what the database says of roles and rights, and shows no secret.
        raise TenantError(f"{direct}: {str(driver_error(error)).splitlines()[0]}") from error
    finally:
        await engine.dispose()


def _with_login(dsn: str, role: str, password: str) -> str:
    return make_url(dsn).set(username=role, password=password).render_as_string(hide_password=False)
