"""What a thief can do with the credential of one namespace to another: nothing, whatever else has leaked."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from support.databases import a_run
from support.tenancy import Tenancy, open_tenancy
from triage_contract.database.rows import RunRow, SessionKey
from triage_contract.names import LIFE_LOCK_CLASS
from triage_local.postgres import PostgresServer

pytestmark = pytest.mark.asyncio(loop_scope="module")

REFUSED, FENCED = "42501", "TR001"

# What each may know: serial, token and session of the victim's open attempt and of two of the thief's own namespace.
ATTACKS: Mapping[str, tuple[str, str]] = {
    # Our tables.
    "read the tokens": ("SELECT token FROM triage.fences", REFUSED),
    "read the runs": ("SELECT * FROM triage.runs", REFUSED),
    "read the journal": ("SELECT * FROM triage.tool_calls", REFUSED),
    "set a token": ("UPDATE triage.fences SET token = 'mine'", REFUSED),
    "open a fence": (
        "INSERT INTO triage.fences VALUES ('victim/default', 'triage', 'new', 1, 'mine')",
        REFUSED,
    ),
    "lock a fence": ("SELECT FROM triage.fences FOR SHARE", REFUSED),
    "move to another namespace": ("UPDATE triage.tenants SET namespace = 'victim'", REFUSED),
    "leave all namespaces": ("DELETE FROM triage.tenants", REFUSED),
    "see who the tenants are": ("SELECT * FROM triage.tenants", REFUSED),
    "empty the runs": ("TRUNCATE triage.runs CASCADE", REFUSED),
    "use up the serials": ("SELECT nextval('triage.attempts_serial_seq')", REFUSED),
    "turn the serials back": ("SELECT setval('triage.attempts_serial_seq', 1)", REFUSED),
    "turn the revision back": ("UPDATE triage.alembic_version SET version_num = '0001'", REFUSED),
    "copy the tokens to a file": ("COPY triage.fences TO '/tmp/tokens'", REFUSED),
    "copy the tokens to a program": ("COPY triage.fences TO PROGRAM 'cat'", REFUSED),
    # Our functions.
    "claim with the right token": ("SELECT triage.claim({victim}, '{victims_token}')", FENCED),
    "claim with an own token": ("SELECT triage.claim({victim}, '{token}')", FENCED),
    "claim with SQL": ("SELECT triage.claim({victim}, $$' OR true OR '$$)", FENCED),
    "claim with no token": ("SELECT triage.claim({victim}, NULL)", FENCED),
    "claim a colleague's": ("SELECT triage.claim({colleague}, '{token}')", FENCED),
    "find a serial": ("SELECT FROM triage.serial_of('{victims_run}', 1) s WHERE s IS NOT NULL", "SELECT 0"),
    "beat its heart": (
        "SELECT FROM triage.heartbeat({victim}, '{victims_token}', 1, true) h"
        " WHERE h.is_current OR h.handoff_reason IS NOT NULL",
        "SELECT 0",
    ),
    "file under its key": (
        "SELECT triage.file_issue({serial}, '{token}', 'call', '{victims_session}/call', 'title', 'body')",
        REFUSED,
    ),
    **{
        f"record a tree that nobody can read: {root}": (
            f"SELECT triage.record_root({{serial}}, '{{token}}', replace('{root}', 'X', {value})::jsonb)",
            "23514",
        )
        for root, value in {
            "X": "'1'",
            '{{"kind": X}}': "repeat('1', 5000)",
            '{{"tools": X}}': "'1'",
            '{{"tools": {{"tool": X}}}}': "repeat('[', 2000) || repeat(']', 2000)",
            '{{"name": "docs", "tools": {{"tool": "ReadOnly", "other": X}}}}': "'[\"ReadOnly\"]'",
        }.items()
    },
    "ask the guard for a fence": (
        "SET triage.token = '{victims_token}';"
        " SELECT triage.guard('victim/default', 'triage', '{victims_session}')",
        REFUSED,
    ),
    "ask for an attempt's row": ("SELECT triage.current_attempt({serial}, '{token}')", REFUSED),
    "ask whether a call is confirmed": ("SELECT triage.is_confirmed(NULL::triage.tool_calls)", REFUSED),
    "count": ("SELECT triage.count_up('runs_ended', '{{}}', 1e9)", REFUSED),
    "become a tenant of it": ("SELECT triage.admit_tenant('me', 'victim', 'x', true, 1)", REFUSED),
    "remove it": ("SELECT triage.remove_tenant('victim')", REFUSED),
    "replace a function": (
        "CREATE OR REPLACE FUNCTION triage.own_namespace() RETURNS text LANGUAGE sql AS $$SELECT 'victim'$$",
        REFUSED,
    ),
    "loosen a function": ("ALTER FUNCTION triage.own_namespace() RESET search_path", REFUSED),
    # What is looked up by name inside of our functions and policies.
    "shadow the tables": (
        "CREATE TEMP TABLE tenants (role name, namespace text); SET search_path = pg_temp, triage, public;"
        " INSERT INTO tenants VALUES (session_user, 'victim'); SELECT triage.claim({victim}, '{victims_token}')",
        FENCED,
    ),
    "shadow a function": (
        "CREATE FUNCTION pg_temp.coalesce(text, text) RETURNS text LANGUAGE sql AS $$SELECT 'victim'$$;"
        " CREATE FUNCTION pg_temp.own_namespace() RETURNS text LANGUAGE sql AS $$SELECT 'victim'$$;"
        " SET search_path = pg_temp, pg_catalog; SELECT triage.claim({victim}, '{victims_token}')",
        FENCED,
    ),
    "shadow an operator": (
        "CREATE FUNCTION pg_temp.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';"
        " CREATE OPERATOR pg_temp.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.never);"
        " SET search_path = pg_temp, pg_catalog; SELECT triage.claim({victim}, 'guess')",
        FENCED,
    ),
    "shadow what a policy calls": (
        "CREATE FUNCTION pg_temp.starts_with(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
        " SET search_path = pg_temp, pg_catalog;"
        " SELECT FROM public.sessions WHERE app_name = 'victim/default'",
        "SELECT 0",
    ),
    # ADK's tables.
    "read a session": ("SELECT * FROM public.sessions WHERE app_name = 'victim/default'", "SELECT 0"),
    "read the events": ("SELECT * FROM public.events WHERE session_id = '{victims_session}'", "SELECT 0"),
    "read the app state": ("SELECT * FROM public.app_states WHERE app_name ~ 'victim'", "SELECT 0"),
    "read the user state": ("SELECT * FROM public.user_states WHERE app_name ~ 'victim'", "SELECT 0"),
    "read of a namespace whose name goes on": (
        "SELECT * FROM public.app_states WHERE app_name ~ '^thief-2'",
        "SELECT 0",
    ),
    "read what belongs to no namespace": (
        "SELECT * FROM public.app_states WHERE app_name = 'thief'",
        "SELECT 0",
    ),
    "read with the right token": (
        "SET triage.token = '{victims_token}'; SELECT FROM public.events WHERE session_id = '{victims_session}'",
        "SELECT 0",
    ),
    "read through a function that tells": (
        "CREATE FUNCTION pg_temp.told(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS"
        " $$BEGIN IF $1 ~ '^victim' THEN RAISE EXCEPTION 'told'; END IF; RETURN false; END$$;"
        " SELECT FROM public.sessions WHERE pg_temp.told(app_name)",
        "SELECT 0",
    ),
    "read through a view": (
        "CREATE TEMP VIEW seen AS SELECT * FROM public.app_states;"
        " SELECT FROM seen WHERE app_name = 'victim/default'",
        "SELECT 0",
    ),
    "read the planner's samples": (
        "SELECT FROM pg_stats WHERE tablename IN ('sessions', 'events', 'app_states')",
        "SELECT 0",
    ),
    "read without row security": ("SET row_security = off; SELECT FROM public.sessions", REFUSED),
    "write a session": (
        "INSERT INTO public.sessions VALUES ('victim/default', 'triage', 'new', '{{}}', now(), now())",
        REFUSED,
    ),
    "write an event with the right token": (
        "SET triage.token = '{victims_token}'; INSERT INTO public.events VALUES"
        " ('id', 'victim/default', 'triage', '{victims_session}', 'invocation', now(), '{{}}')",
        REFUSED,
    ),
    "write an app state": (
        "INSERT INTO public.app_states VALUES ('victim/default', '{{}}', now())"
        " ON CONFLICT (app_name) DO UPDATE SET state = excluded.state",
        REFUSED,
    ),
    "change an app state": (
        "UPDATE public.app_states SET state = '{{}}' WHERE app_name = 'victim/default'",
        "UPDATE 0",
    ),
    "change a session": (
        "SET triage.token = '{victims_token}';"
        " UPDATE public.sessions SET state = '{{}}' WHERE id = '{victims_session}'",
        "UPDATE 0",
    ),
    "lock a session": ("SELECT FROM public.sessions WHERE id = '{victims_session}' FOR UPDATE", "SELECT 0"),
    "push a session over": ("UPDATE public.sessions SET app_name = 'victim/default'", REFUSED),
    "push a state over": ("UPDATE public.app_states SET app_name = 'victim/other'", REFUSED),
    "rewrite history": ("UPDATE public.events SET event_data = '{{}}'", REFUSED),
    "delete sessions": ("DELETE FROM public.sessions", REFUSED),
    "empty the events": ("TRUNCATE public.events", REFUSED),
    "lock everybody out": ("BEGIN; LOCK TABLE public.sessions IN ACCESS EXCLUSIVE MODE", REFUSED),
    "lock everybody's writes out": ("BEGIN; LOCK TABLE public.events IN SHARE MODE", REFUSED),
    "load from a file": ("COPY public.app_states FROM '/etc/passwd'", REFUSED),
    "write to a colleague's session": (
        "SET triage.token = '{token}'; UPDATE public.sessions SET state = '{{}}' WHERE id = '{colleagues_session}'",
        FENCED,
    ),
    "write to a colleague's session with a guess": (
        "SET triage.token = ''; INSERT INTO public.events VALUES"
        " ('id', 'thief/default', 'triage', '{colleagues_session}', 'invocation', now(), '{{}}')",
        FENCED,
    ),
    # What guards the tables.
    "disarm the fence": ("ALTER TABLE public.events DISABLE TRIGGER triage_guard", REFUSED),
    "remove the fence": ("DROP TRIGGER triage_guard ON public.events", REFUSED),
    "pass for a replica": ("SET session_replication_role = replica", REFUSED),
    "disarm the policies": ("ALTER TABLE public.events DISABLE ROW LEVEL SECURITY", REFUSED),
    "add a policy": ("CREATE POLICY mine ON public.events USING (true)", REFUSED),
    "add a trigger": (
        "CREATE TRIGGER mine BEFORE INSERT ON public.events EXECUTE FUNCTION triage.guard_event()",
        REFUSED,
    ),
    "add a rule": ("CREATE RULE mine AS ON INSERT TO public.events DO INSTEAD NOTHING", REFUSED),
    "make a table": ("CREATE TABLE public.mine ()", REFUSED),
    "make a function": ("CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'", REFUSED),
    "make a schema": ("CREATE SCHEMA mine", REFUSED),
    "set what others look up": ("ALTER DATABASE {database} SET search_path = mine", REFUSED),
    # Other roles and the server.
    "be the owner": ("SET ROLE {owner}", REFUSED),
    "have been the owner": ("SET SESSION AUTHORIZATION {owner}", REFUSED),
    "be the victim": ("SET ROLE {victims_role}", REFUSED),
    "join the owner": ("GRANT {owner} TO {role}", REFUSED),
    "be mighty": ("ALTER ROLE {role} SUPERUSER", REFUSED),
    "see through policies": ("ALTER ROLE {role} BYPASSRLS", REFUSED),
    "lift an own limit": ("ALTER ROLE {role} CONNECTION LIMIT -1", REFUSED),
    "set another's password": ("ALTER ROLE {victims_role} PASSWORD 'mine'", REFUSED),
    "make a role": ("CREATE ROLE mine", REFUSED),
    "read the passwords": ("SELECT rolpassword FROM pg_authid", REFUSED),
    "hand on a right": ("GRANT SELECT ON public.events TO PUBLIC", "GRANT"),
    "end another's connection": ("SELECT pg_terminate_backend({victims_pid})", REFUSED),
    "cancel the owner's statement": ("SELECT pg_cancel_backend({owners_pid})", REFUSED),
    "read others' statements": (
        "SELECT FROM pg_stat_activity WHERE usename <> session_user"
        " AND query NOT IN ('', '<insufficient privilege>')",
        "SELECT 0",
    ),
    "read a large object": ("SELECT lo_get({large_object})", REFUSED),
    "read a file": ("SELECT pg_read_file('/etc/passwd')", REFUSED),
    "import a file": ("SELECT lo_import('/etc/passwd')", REFUSED),
    "follow the log of changes": ("SELECT pg_create_physical_replication_slot('mine')", REFUSED),
    "set the server up": ("ALTER SYSTEM SET fsync = off", REFUSED),
    # What is allowed, and does no more than to wake somebody up, or to hide a death until the heartbeat lapses.
    "wake the operator": ("SELECT pg_notify('triage_released', '{victims_run}')", "SELECT 1"),
    "free a lock": (
        f"SELECT FROM pg_advisory_unlock({LIFE_LOCK_CLASS}, {{victim}}) AS done WHERE done",
        "SELECT 0",
    ),
}

CATALOGUE = """
SELECT jsonb_build_array(
    (SELECT jsonb_agg((c.relname, c.relacl, c.relrowsecurity) ORDER BY c.oid)
     FROM pg_class c WHERE c.relnamespace IN ('triage'::regnamespace, 'public'::regnamespace)),
    (SELECT jsonb_agg(to_jsonb(p) ORDER BY p.oid)
     FROM pg_proc p WHERE p.pronamespace IN ('triage'::regnamespace, 'public'::regnamespace)),
    (SELECT jsonb_agg((n.nspname, n.nspacl) ORDER BY n.oid) FROM pg_namespace n WHERE n.nspname !~ '^pg_'),
    (SELECT jsonb_agg((t.tgname, t.tgenabled) ORDER BY t.oid) FROM pg_trigger t),
    (SELECT jsonb_agg((p.polname, pg_get_expr(p.polqual, p.polrelid)) ORDER BY p.oid) FROM pg_policy p),
    (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.oid) FROM pg_roles r),
    (SELECT jsonb_agg(to_jsonb(d) - 'datfrozenxid' ORDER BY d.oid) FROM pg_database d)
)::text
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A victim at work, and all that a thief may know; ``dsn`` is the stolen credential."""

    tenancy: Tenancy
    dsn: str
    owner: asyncpg.Connection
    known: Mapping[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(postgres: PostgresServer) -> AsyncIterator[Scene]:
    async with open_tenancy(postgres) as tenancy:
        yield await _set(tenancy)


async def _set(tenancy: Tenancy) -> Scene:
    database = tenancy.database
    thiefs, colleagues, victims = (_run(namespace) for namespace in ("thief", "thief", "victim"))
    own, colleague, victim = [await database.open(run) for run in (thiefs, colleagues, victims)]
    dsn, victims_dsn = await tenancy.admit("thief"), await tenancy.admit("victim")
    thief, at_work = await tenancy.connect(dsn), await tenancy.connect(victims_dsn)
    owner = await tenancy.connect(database.url.dsn)
    for connection, attempt in ((thief, own), (at_work, victim)):
        await connection.fetch("SELECT triage.claim($1, $2)", attempt.serial, attempt.token)
        await connection.fetch(
            "SELECT triage.begin_call($1, $2, 'call', 'tool', 'Idempotent', '{}')",
            attempt.serial,
            attempt.token,
        )
        await connection.fetch(
            "SELECT triage.open_session($1, $2, now()::timestamp)", attempt.serial, attempt.token
        )
    await at_work.fetch(
        "SELECT triage.file_issue($1, $2, 'call', $3, 'title', 'body')",
        victim.serial,
        victim.token,
        f"{victims.session.session_id}/call",
    )
    await thief.fetch(
        "SELECT triage.open_session($1, $2, now()::timestamp)", colleague.serial, colleague.token
    )
    await thief.close()
    await owner.execute(
        "INSERT INTO public.app_states VALUES ('thief', '{}', now()), ('thief-2/default', '{}', now())"
    )
    large_object = await owner.fetchval("SELECT lo_from_bytea(0, 'secret')")
    await owner.execute("ANALYZE")
    known = {
        "serial": own.serial,
        "token": own.token,
        "colleague": colleague.serial,
        "colleagues_session": colleagues.session.session_id,
        "victim": victim.serial,
        "victims_token": victim.token,
        "victims_run": victims.id,
        "victims_session": victims.session.session_id,
        "victims_role": tenancy.role("victim"),
        "victims_pid": at_work.get_server_pid(),
        "role": tenancy.role("thief"),
        "owner": await owner.fetchval("SELECT current_user"),
        "owners_pid": owner.get_server_pid(),
        "database": await owner.fetchval("SELECT current_database()"),
        "large_object": large_object,
    }
    return Scene(tenancy=tenancy, dsn=dsn, owner=owner, known=known)


def _run(namespace: str) -> RunRow:
    run = a_run()
    session = SessionKey(app_name=f"{namespace}/default", user_id="triage", session_id=run.session.session_id)
    return replace(run, namespace=namespace, session=session)


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_thief_cannot(scene: Scene, name: str) -> None:
    sql, expected = ATTACKS[name]
    before = await _state(scene.owner)
    thief = await asyncpg.connect(scene.dsn)
    try:
        got = await thief.execute(sql.format(**scene.known))
    except asyncpg.PostgresError as error:
        got = error.sqlstate
    finally:
        await thief.close()
    assert got == expected
    assert await _state(scene.owner) == before


async def _state(owner: asyncpg.Connection) -> list[Any]:
    """All that an attack could change: the rows of each table and sequence, and the catalogue."""
    relations = await owner.fetch(
        "SELECT c.oid::regclass::text FROM pg_class c"
        " WHERE c.relkind IN ('r', 'S') AND c.relnamespace IN ('triage'::regnamespace, 'public'::regnamespace)"
    )
    rows = " UNION ALL ".join(
        f"SELECT '{name}', it::text FROM (SELECT * FROM {name}) AS it" for (name,) in relations
    )
    return [await owner.fetchval(CATALOGUE), await owner.fetch(f"{rows} ORDER BY 1, 2")]
