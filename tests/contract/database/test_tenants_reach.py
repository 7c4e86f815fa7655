"""What a tenant reaches: what ADK's session service wants of its own namespace, and our functions with its tokens."""

from collections.abc import Mapping

import asyncpg
import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy.engine import make_url

from support.databases import a_run
from support.tenancy import Tenancy, tenancy

__all__ = ["tenancy"]

OTHERS: Mapping[str, object] = {"app_name": "other/default", "user_id": "triage", "session_id": "session"}
OWN: Mapping[str, object] = {**OTHERS, "app_name": "docs/default"}

TOKEN_FUNCTIONS = """
SELECT p.proname || '($1, $2' || coalesce((
        SELECT string_agg(', NULL::' || t::regtype, '' ORDER BY place)
        FROM unnest(p.proargtypes[2:]) WITH ORDINALITY a (t, place)
    ), '') || ')' AS call
FROM pg_proc p
WHERE p.pronamespace = 'triage'::regnamespace AND p.proargnames[2] = 'p_token'
    AND has_function_privilege($1, p.oid, 'EXECUTE')
"""

OUR_RELATIONS = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'triage'::regnamespace AND c.relkind IN ('r', 'v', 'S') AND CASE c.relkind
    WHEN 'S' THEN has_sequence_privilege(:role, c.oid, 'USAGE, SELECT, UPDATE')
    ELSE has_any_column_privilege(:role, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')
        OR has_table_privilege(:role, c.oid, 'DELETE, TRUNCATE, TRIGGER') END
"""

OUR_FUNCTIONS = """
SELECT p.proname, p.prosecdef, coalesce('search_path=pg_catalog, pg_temp' = ANY(p.proconfig), false),
    has_function_privilege(:role, p.oid, 'EXECUTE'), has_function_privilege('public', p.oid, 'EXECUTE')
FROM pg_proc p WHERE p.pronamespace = 'triage'::regnamespace
"""


def _service(dsn: str) -> DatabaseSessionService:
    return DatabaseSessionService(dsn.replace("postgresql://", "postgresql+asyncpg://"))


async def _write(service: DatabaseSessionService, session: Mapping[str, object]) -> None:
    opened = await service.create_session(**session)  # type: ignore[arg-type]
    changes = EventActions(state_delta={"own": 1, "app:shared": 2, "user:kept": 3})
    await service.append_event(opened, Event(author="docs", invocation_id="invocation", actions=changes))


async def test_adks_own_service_works_in_a_namespace_and_sees_no_other(tenancy: Tenancy) -> None:
    async with _service(await tenancy.admit("docs")) as docs, _service(await tenancy.admit("other")) as other:
        await _write(docs, OWN)
        await _write(other, OTHERS)
        found = await docs.get_session(**OWN)  # type: ignore[arg-type]
        assert found is not None
        assert found.state == {"own": 1, "app:shared": 2, "user:kept": 3}
        assert len(found.events) == 1
        listed = await docs.list_sessions(app_name="docs/default")
        assert [session.id for session in listed.sessions] == ["session"]
        assert await docs.get_session(**OTHERS) is None  # type: ignore[arg-type]
        assert (await docs.list_sessions(app_name="other/default")).sessions == []
        with pytest.raises(Exception, match="row-level security"):
            await docs.create_session(app_name="other/default", user_id="triage")
    assert await tenancy.database.values("SELECT count(*) FROM events") == [(2,)]


@pytest.mark.parametrize(
    "rights",
    [
        "GRANT SELECT ON public.sessions TO {role}",
        "GRANT USAGE ON SCHEMA triage TO {role}; GRANT SELECT ON public.sessions, triage.fences TO {role}",
    ],
    ids=["another_application", "an_operator_of_its_own"],
)
async def test_who_is_no_tenant_sees_what_it_saw_before(tenancy: Tenancy, rights: str) -> None:
    async with _service(await tenancy.admit("docs")) as docs:
        await _write(docs, OWN)
    role = tenancy.role("role")
    owner = await tenancy.connect(tenancy.database.url.dsn)
    assert await owner.fetchval("SELECT count(*) FROM sessions") == 1
    await owner.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'known'; {rights.format(role=role)}")
    theirs = make_url(tenancy.database.url.dsn).set(username=role, password="known")
    connection = await tenancy.connect(theirs.render_as_string(hide_password=False))
    assert await connection.fetchval("SELECT count(*) FROM sessions") == 1
    await owner.execute(f"GRANT {role} TO CURRENT_USER; DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize("lost", ["ALTER ROLE {role} RENAME TO {role}_new", "DELETE FROM triage.tenants"])
async def test_a_tenant_that_lost_its_row_reaches_nothing(tenancy: Tenancy, lost: str) -> None:
    run = a_run()
    attempt = await tenancy.database.open(run)
    dsn = await tenancy.admit("docs")
    async with _service(dsn) as docs:
        await _write(docs, OWN)
    connection = await tenancy.connect(dsn)
    await tenancy.database.values(lost.format(role=tenancy.role("docs")))
    assert await connection.fetch("SELECT FROM sessions") == []
    with pytest.raises(asyncpg.PostgresError) as refused:
        await connection.fetch("SELECT triage.claim($1, $2)", attempt.serial, attempt.token)
    assert refused.value.sqlstate == "TR001"
    await tenancy.forget("docs", renamed="RENAME" in lost)


async def test_no_function_takes_anothers_serial_or_token(tenancy: Tenancy) -> None:
    run, colleagues = a_run(), a_run()
    attempt, colleague = await tenancy.database.open(run), await tenancy.database.open(colleagues)
    stale = await tenancy.database.open(a_run())
    docs = await tenancy.connect(await tenancy.admit("docs"))
    other = await tenancy.connect(await tenancy.admit("other"))
    calls = [row["call"] for row in await docs.fetch(TOKEN_FUNCTIONS, tenancy.role("docs"))]
    assert len(calls) > 15
    for call in calls:
        for connection, serial, token in (
            (other, attempt.serial, attempt.token),
            (docs, attempt.serial, colleague.token),
            (docs, attempt.serial, None),
            (docs, stale.serial + 1, attempt.token),
        ):
            if call.startswith("heartbeat"):
                row = await connection.fetchrow(f"SELECT * FROM triage.{call}", serial, token)
                assert tuple(row) == (False, None)
                continue
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.fetch(f"SELECT triage.{call}", serial, token)
            assert refused.value.sqlstate == "TR001", call


async def test_a_tenant_has_no_right_to_our_tables_and_each_of_our_functions_is_closed(
    tenancy: Tenancy,
) -> None:
    await tenancy.admit("docs")
    readable = await tenancy.database.values(OUR_RELATIONS, role=tenancy.role("docs"))
    assert readable == [("alembic_version",)]
    functions = await tenancy.database.values(OUR_FUNCTIONS, role=tenancy.role("docs"))
    assert {name for name, *_, by_anybody in functions if by_anybody} == {"own_namespace"}
    for name, is_definer, has_path, by_tenants, _ in functions:
        assert has_path or not (is_definer or by_tenants), name
        assert is_definer or not by_tenants, name
