"""The schema, and what says that it is not there."""

import asyncio

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import text

from support.databases import Database
from triage_contract.database import migrating
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import NEWEST_REVISION, check_schema, migrate
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUnreachableError, DatabaseUrlError, SchemaError
from triage_contract.states import Pooler
from triage_local.postgres import PostgresServer


def test_the_newest_revision_is_the_head_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrating._MIGRATIONS))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [NEWEST_REVISION]


async def test_two_that_migrate_at_once_both_succeed(postgres: PostgresServer) -> None:
    url = DatabaseUrl.parse(postgres.create_database())
    assert set(await asyncio.gather(migrate(url), migrate(url))) == {NEWEST_REVISION}
    connection = PreparedConnection(url, application="test")
    await check_schema(connection, url)
    await connection.close()


async def test_an_empty_database_is_told_from_a_migrated_one(postgres: PostgresServer) -> None:
    url = DatabaseUrl.parse(postgres.create_database())
    connection = PreparedConnection(url, application="test")
    with pytest.raises(SchemaError, match="triage-operator migrate"):
        await check_schema(connection, url)
    await connection.close()


async def test_a_missing_trigger_is_seen(database: Database) -> None:
    async with database.engine.begin() as connection:
        await connection.execute(text("DROP TRIGGER triage_guard ON events"))
    with pytest.raises(SchemaError, match="no fence trigger"):
        await check_schema(database.prepared(), database.url)


async def test_a_database_that_holds_adk_tables_already_keeps_them(postgres: PostgresServer) -> None:
    from google.adk.sessions.database_session_service import DatabaseSessionService

    dsn = postgres.create_database()
    async with DatabaseSessionService(dsn.replace("postgresql://", "postgresql+asyncpg://")) as service:
        await service.create_session(app_name="a", user_id="u", session_id="s")
        await migrate(DatabaseUrl.parse(dsn))
        assert await service.get_session(app_name="a", user_id="u", session_id="s") is not None


async def test_our_adk_tables_are_those_that_adk_makes(postgres: PostgresServer, database: Database) -> None:
    from google.adk.sessions.database_session_service import DatabaseSessionService

    dsn = postgres.create_database()
    async with DatabaseSessionService(dsn.replace("postgresql://", "postgresql+asyncpg://")) as service:
        await service.prepare_tables()
    columns = (
        "SELECT table_name, column_name, data_type, character_maximum_length, is_nullable"
        " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2"
    )
    engine = open_engine(DatabaseUrl.parse(dsn), application="test")
    async with engine.connect() as connection:
        adks = [tuple(row) for row in await connection.execute(text(columns))]
    await engine.dispose()
    assert await database.values(columns) == adks


@pytest.mark.parametrize(
    ("dsn", "says"),
    [
        ("", "cannot be read"),
        ("not a url", "cannot be read"),
        ("mysql://user:hidden-word@host/db", "begins with 'mysql'"),
        ("postgresql://user:hidden-word@host:port/db", "cannot be read"),
    ],
)
def test_a_wrong_url_is_refused_without_showing_it(dsn: str, says: str) -> None:
    with pytest.raises(DatabaseUrlError, match=says) as refused:
        DatabaseUrl.parse(dsn)
    assert "hidden-word" not in str(refused.value)


async def test_wrong_credentials_and_a_closed_port_are_unreachable_and_show_no_password(
    postgres: PostgresServer,
) -> None:
    right = postgres.url()
    wrong = DatabaseUrl.parse(right).dsn
    for dsn in (wrong.replace("@", "-hidden-word@"), "postgresql://u:hidden-word@127.0.0.1:1/db"):
        url = DatabaseUrl.parse(dsn)
        connection = PreparedConnection(url, application="test")
        with pytest.raises(DatabaseUnreachableError) as refused:
            await check_schema(connection, url)
        assert "hidden-word" not in str(refused.value)


def test_behind_a_pooler_there_is_no_direct_way_unless_it_is_named() -> None:
    dsn = "postgresql://host/db"
    assert DatabaseUrl.parse(dsn).direct_dsn == dsn
    assert DatabaseUrl.parse(dsn, pooler=Pooler.TRANSACTION).direct_dsn is None
    named = DatabaseUrl.parse(dsn, direct_dsn="postgresql://other/db", pooler=Pooler.TRANSACTION)
    assert named.direct_dsn == "postgresql://other/db"
