"""Bringing a database to the newest schema.

Agents check the schema and never change it: only what does imports SQLAlchemy and Alembic.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import SchemaError
from triage_contract.states import Pooler

if TYPE_CHECKING:
    from sqlalchemy import Connection

NEWEST_REVISION: Final = "0003"
"""The revision that this version of the package brings a database to; a test holds it against the migrations."""

_MIGRATIONS: Final = Path(__file__).parent / "migrations"
_REVISION: Final = """
SELECT version_num AS revision, (
    SELECT count(*) FROM pg_trigger WHERE tgname = 'triage_guard' AND tgenabled <> 'D'
        AND tgrelid IN (to_regclass('public.events'), to_regclass('public.sessions'))
) AS guarded
FROM triage.alembic_version
"""


async def migrate(url: DatabaseUrl) -> str:
    """Create or upgrade our schema and ADK's tables, as the role of ``url``, past any pooler.

    Safe to run twice at once: the second waits for the first. Returns the revision reached.
    """
    from triage_contract.database.engine import open_engine, translated

    direct = DatabaseUrl.parse(url.direct_dsn or url.dsn, pooler=Pooler.NONE)
    engine = open_engine(direct, application="triage-migrate")
    try:
        with translated(direct):
            async with engine.begin() as connection:
                await connection.run_sync(_upgrade)
    finally:
        await engine.dispose()
    return NEWEST_REVISION


async def check_schema(connection: PreparedConnection, url: DatabaseUrl) -> None:
    """See that the schema is the one this version was written for, and that the fence's triggers are armed.

    Raises:
        SchemaError: it is not; the message says what to run.
        DatabaseUnreachableError: nobody answers.
    """
    rows = await connection.fetch(_REVISION)
    revision = rows[0]["revision"] if rows else None
    if revision is None or revision < NEWEST_REVISION:
        raise SchemaError(f"{url} is at revision {revision}: run `triage-operator migrate`")
    if rows[0]["guarded"] != 2:
        raise SchemaError(f"{url} has no fence trigger on ADK's tables: run `triage-operator migrate`")


def _upgrade(connection: "Connection") -> None:
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import text

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('triage.migrate'))"))
    connection.execute(text("CREATE SCHEMA IF NOT EXISTS triage"))
    command.upgrade(config, "head")


def run_script(connection: "Connection", name: str) -> None:
    """Run a whole SQL file of the migrations folder in the connection's transaction.

    The driver's simple protocol takes several statements at once, which a prepared statement does not.
    """
    from sqlalchemy.util import await_only

    script = (_MIGRATIONS / "versions" / name).read_text(encoding="utf-8")
    driver = connection.connection.driver_connection
    assert driver is not None
    await_only(driver.execute(script))
