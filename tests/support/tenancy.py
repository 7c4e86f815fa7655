"""A database whose owner is no superuser, and tenants of it, as an administrator makes them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from support.databases import Database
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_local.postgres import PostgresServer
from triage_operator import tenants


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """A migrated database, its owner, who may create roles, and the tenants that the test makes."""

    database: Database
    suffix: str
    opened: list[asyncpg.Connection] = field(default_factory=list)

    def role(self, namespace: str) -> str:
        """The role of a namespace: roles belong to the whole server, which other tests use as well."""
        return f"{namespace}_{self.suffix}"

    async def admit(self, namespace: str) -> str:
        """Make a tenant, and give its URL."""
        made = await tenants.add(
            self.database.url, namespace, role=self.role(namespace), connection_limit=None, rotate=False
        )
        assert made.url is not None
        return made.url

    async def forget(self, namespace: str, *, renamed: bool) -> None:
        """Drop a tenant's role that the command no longer finds."""
        role = f"{self.role(namespace)}_new" if renamed else self.role(namespace)
        await self.database.values(f"DROP OWNED BY {role}")
        await self.database.values(f"DROP ROLE {role}")

    async def connect(self, dsn: str) -> asyncpg.Connection:
        """Connect as somebody, until the test ends."""
        connection = await asyncpg.connect(dsn)
        self.opened.append(connection)
        return connection


@pytest.fixture
async def tenancy(postgres: PostgresServer) -> AsyncIterator[Tenancy]:
    """A database of the test's own."""
    async with open_tenancy(postgres) as tenancy:
        yield tenancy


@asynccontextmanager
async def open_tenancy(postgres: PostgresServer) -> AsyncIterator[Tenancy]:
    """Make a database of an owner that is no superuser; it and its tenants are removed afterwards."""
    suffix = uuid4().hex[:8]
    owner, password = f"owner_{suffix}", uuid4().hex
    administrator = await asyncpg.connect(postgres.url())
    await administrator.execute(f"CREATE ROLE {owner} LOGIN CREATEROLE PASSWORD '{password}'")
    await administrator.execute(f"CREATE DATABASE tenancy_{suffix} OWNER {owner}")
    dsn = make_url(postgres.url(f"tenancy_{suffix}")).set(username=owner, password=password)
    url = DatabaseUrl.parse(dsn.render_as_string(hide_password=False))
    await migrate(url)
    engine = open_engine(url, application="test-operator", pool_size=4)
    tenancy = Tenancy(database=Database(url=url, engine=engine), suffix=suffix)
    yield tenancy
    for connection in tenancy.opened:
        connection.terminate()
    for prepared in tenancy.database.opened:
        await prepared.close()
    for each in await tenants.tenants(url):
        await tenants.remove(url, each.namespace)
    await engine.dispose()
    await administrator.execute(f"DROP DATABASE tenancy_{suffix} (FORCE)")
    await administrator.execute(f"DROP ROLE {owner}")
    await administrator.close()
