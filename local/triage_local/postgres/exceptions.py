"""Errors of the embedded Postgres."""

from triage_local.exceptions import LocalClusterError


class PostgresError(LocalClusterError):
    """The server could not be started, or refused a statement. The message has no password in it."""


class PostgresNotInstalledError(PostgresError):
    """Something that is needed to run Postgres is missing on this machine."""
