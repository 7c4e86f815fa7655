"""``triage-operator tenant``: roles made, brought up to date, listed and removed."""

import asyncio
from collections.abc import Awaitable, Callable

import asyncpg
import pytest
import yaml
from click.testing import CliRunner, Result
from sqlalchemy.engine import make_url

from support.databases import Database
from support.tenancy import Tenancy, tenancy
from triage_local.postgres import PostgresServer
from triage_operator.cli import main
from triage_operator.identity import app_name
from triage_operator.tenants import MAX_ROLE_BYTES, role_name

__all__ = ["tenancy"]

LONGEST = "n" * 63

Invoke = Callable[..., Awaitable[Result]]


@pytest.fixture
def invoke(tenancy: Tenancy) -> Invoke:
    """Give the command with the owner's URL, or another; it ends with ``code``."""

    async def invoke(*arguments: str, code: int = 0, dsn: str = tenancy.database.url.dsn) -> Result:
        result = await asyncio.to_thread(
            CliRunner().invoke, main, ["tenant", *arguments], env={"TRIAGE_OPERATOR_DATABASE_URL": dsn}
        )
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result

    return invoke


async def _connects(dsn: str) -> bool:
    try:
        connection = await asyncpg.connect(dsn)
    except asyncpg.InvalidAuthorizationSpecificationError:
        return False
    await connection.close()
    return True


async def test_a_new_tenant_gets_the_url_of_its_role(invoke: Invoke, tenancy: Tenancy) -> None:
    role = tenancy.role("docs")
    added = await invoke("add", "docs", "--role", role)
    dsn = added.stdout.strip()
    assert make_url(dsn).username == role
    connection = await tenancy.connect(dsn)
    assert await connection.fetchval("SELECT triage.own_namespace()") == "docs"
    assert await connection.fetchrow(
        "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication AS mighty,"
        " rolconnlimit AS most FROM pg_roles WHERE rolname = session_user"
    ) == (False, -1)


async def test_again_it_keeps_its_password_unless_that_is_to_be_rotated(
    invoke: Invoke, tenancy: Tenancy
) -> None:
    command = ("add", "docs", "--role", tenancy.role("docs"))
    first = (await invoke(*command)).stdout.strip()
    again = await invoke(*command, "--connection-limit", "3")
    assert again.stdout == ""
    assert "--rotate" in again.stderr
    assert await _connects(first)
    connected = await tenancy.connect(first)
    await connected.execute(f"ALTER ROLE {tenancy.role('docs')} SET search_path = elsewhere")
    ended = asyncio.Event()
    connected.add_termination_listener(lambda _connection: ended.set())
    rotated = (await invoke(*command, "--rotate")).stdout.strip()
    await asyncio.wait_for(ended.wait(), 10)
    connected = await tenancy.connect(rotated)
    assert await connected.fetchval("SHOW search_path") == '"$user", public'
    await connected.close()
    assert not await _connects(first)
    listed = await invoke("list")
    assert listed.output == f"docs  {tenancy.role('docs')}  0 connections, at most 3\n"


async def test_a_role_at_its_limit_gets_no_further_connection(invoke: Invoke, tenancy: Tenancy) -> None:
    added = await invoke("add", "docs", "--role", tenancy.role("docs"), "--connection-limit", "1")
    await tenancy.connect(added.stdout.strip())
    with pytest.raises(asyncpg.TooManyConnectionsError):
        await asyncpg.connect(added.stdout.strip())


async def test_the_secret_holds_the_url(invoke: Invoke, tenancy: Tenancy) -> None:
    added = await invoke("add", "docs", "--role", tenancy.role("docs"), "--print-secret", "database")
    secret = yaml.safe_load(added.stdout)
    assert (secret["kind"], secret["metadata"]) == ("Secret", {"name": "database", "namespace": "docs"})
    assert list(secret["stringData"]) == ["url"]
    assert await _connects(secret["stringData"]["url"])


async def test_the_server_never_sees_a_password(invoke: Invoke, tenancy: Tenancy, database: Database) -> None:
    dsn = (await invoke("add", "docs", "--role", tenancy.role("docs"))).stdout.strip()
    ((kept,),) = await database.values(
        "SELECT rolpassword FROM pg_authid WHERE rolname = :role", role=tenancy.role("docs")
    )
    assert str(kept).startswith("SCRAM-SHA-256$4096:")
    assert str(make_url(dsn).password) not in str(kept)


async def test_a_removed_tenant_is_disconnected_and_cannot_come_back(
    invoke: Invoke, tenancy: Tenancy
) -> None:
    dsn = await tenancy.admit("docs")
    connection = await tenancy.connect(dsn)
    await connection.execute("CREATE TEMP TABLE own (); SELECT lo_create(0)")
    ended = asyncio.Event()
    connection.add_termination_listener(lambda _connection: ended.set())
    removed = await invoke("remove", "docs")
    assert removed.output == f"removed {tenancy.role('docs')}\n"
    await asyncio.wait_for(ended.wait(), 10)
    assert not await _connects(dsn)
    assert (await invoke("list")).output == ""


async def test_a_role_that_is_something_else_is_refused(invoke: Invoke, tenancy: Tenancy) -> None:
    owner = str(make_url(tenancy.database.url.dsn).username)
    await tenancy.admit("other")
    for taken in (owner, "triage", "pg_read_all_data", tenancy.role("other")):
        result = await invoke("add", "docs", "--role", taken, code=1)
        assert f'role "{taken}" exists, and is no tenant of namespace docs' in result.output


async def test_a_schema_in_which_every_role_may_create_is_refused(invoke: Invoke, tenancy: Tenancy) -> None:
    await tenancy.database.values("GRANT CREATE ON SCHEMA public TO PUBLIC")
    result = await invoke("add", "docs", "--role", tenancy.role("docs"), code=1)
    assert "REVOKE CREATE ON SCHEMA public FROM PUBLIC" in result.output
    assert (await invoke("list")).output == ""


async def test_a_tenant_is_no_administrator(invoke: Invoke, tenancy: Tenancy) -> None:
    dsn = await tenancy.admit("docs")
    for command in (("add", "other"), ("add", "docs", "--role", tenancy.role("docs"), "--rotate"), ("list",)):
        result = await invoke(*command, code=1, dsn=dsn)
        assert "permission denied" in result.output
        assert str(make_url(dsn).password) not in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "no/name"), "'no/name' is no name of a namespace"),
        (("add", ""), "'' is no name of a namespace"),
        (("add", "docs", "--role", "r" * (MAX_ROLE_BYTES + 1)), "at most 63 bytes"),
        (("remove", "docs"), "namespace docs is no tenant"),
    ],
)
async def test_what_makes_no_sense_gets_a_line(invoke: Invoke, arguments: tuple[str, ...], says: str) -> None:
    assert says in (await invoke(*arguments, code=1)).output


async def test_a_database_without_our_schema_says_what_to_run(
    invoke: Invoke, postgres: PostgresServer
) -> None:
    result = await invoke("add", "docs", code=1, dsn=postgres.create_database())
    assert "triage-operator migrate" in result.output


def test_the_longest_namespace_has_a_role_and_stays_whole_in_the_names_of_its_applications() -> None:
    assert role_name("docs") == "triage_docs"
    assert len(role_name(LONGEST)) == MAX_ROLE_BYTES
    assert role_name(LONGEST) != role_name(LONGEST[:-1])
    assert app_name(LONGEST, "a" * 253).startswith(f"{LONGEST}/")
