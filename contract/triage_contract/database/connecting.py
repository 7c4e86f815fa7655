"""Connections to Postgres by its driver alone, and the translation of its errors into ours.

No SQLAlchemy: importing that takes longer than an agent process needs to connect, claim and judge.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import asyncpg

from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import (
    AlreadyClaimedError,
    CallRunningError,
    DatabaseUnreachableError,
    FencedError,
    SchemaError,
    SessionMissingError,
    SessionStaleError,
)
from triage_contract.names import FENCED_SQLSTATE, TOKEN_SETTING
from triage_contract.states import Pooler

CONNECT_TIMEOUT_SECONDS: Final = 10.0

IDLE_IN_TRANSACTION_SECONDS: Final = 10
"""A process frozen inside a transaction loses its backend, and with it its row locks, after this long."""

KEEPALIVE: Final = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
}
"""A backend notices a powered-off client, and frees its advisory lock, after about 11 seconds."""

_UNREACHABLE: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InterfaceError,
    # A statement that was broken off, or waited in vain: it had no effect, and may be given again.
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    # What a statement gets that comes between the server's last word and the end of its connection.
    asyncpg.InternalClientError,
)
_BY_SQLSTATE: Final = {
    FENCED_SQLSTATE: FencedError,
    "TR002": AlreadyClaimedError,
    "TR003": CallRunningError,
    "TR005": SessionStaleError,
    "TR006": SessionMissingError,
}
_SCHEMA_MISSING: Final = (
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedFunctionError,
    asyncpg.InvalidSchemaNameError,
)


async def connect(
    url: DatabaseUrl, *, application: str, token: str | None = None, statement_seconds: float | None = None
) -> asyncpg.Connection:
    """Open one connection, through the pooler where there is one; see ``engine.open_engine``."""
    pooled = url.pooler is Pooler.TRANSACTION
    return await asyncpg.connect(
        url.dsn,
        server_settings={"application_name": application} if pooled else _server_settings(application, token),
        timeout=CONNECT_TIMEOUT_SECONDS,
        command_timeout=statement_seconds,
        statement_cache_size=0 if pooled else 100,
        # What is prepared stays so: after the driver's five minutes a posted statement would wait for its preparation.
        max_cached_statement_lifetime=0,
    )


async def connect_directly(url: DatabaseUrl, *, application: str) -> asyncpg.Connection:
    """Open one connection, past any pooler where there is a way.

    Raises:
        DatabaseUnreachableError: nobody answers there.
    """
    direct = url.direct_dsn is not None
    with translated(url):
        return await asyncpg.connect(
            url.direct_dsn or url.dsn,
            server_settings=_server_settings(application, None)
            if direct
            else {"application_name": application},
            timeout=CONNECT_TIMEOUT_SECONDS,
            statement_cache_size=100 if direct else 0,
        )


@contextmanager
def translated(url: DatabaseUrl) -> Iterator[None]:
    """Raise errors of the driver as errors of the contract.

    Raises:
        DatabaseUnreachableError: refused, timed out, shut down, wrong credentials.
        FencedError, AlreadyClaimedError, CallRunningError, SessionStaleError, SessionMissingError: what our functions
            and triggers say.
        SchemaError: our tables are missing or too old.
    """
    try:
        yield
    except (
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
        TimeoutError,
    ) as error:
        raise translate(error, url) from error


def translate(error: BaseException, url: DatabaseUrl) -> BaseException:
    """Give the contract's error for one of the driver's, or the error itself where there is none."""
    if isinstance(error, asyncpg.PostgresError) and error.sqlstate in _BY_SQLSTATE:
        return _BY_SQLSTATE[error.sqlstate](str(error))
    if isinstance(error, _SCHEMA_MISSING):
        return SchemaError(f"{url} lacks our tables, or has older ones: run `triage-operator migrate`")
    if isinstance(error, _UNREACHABLE):
        return DatabaseUnreachableError(f"{url}: {_reason(error)}")
    return error


def _reason(cause: BaseException) -> str:
    # The driver's text for a failed login names the user, which is not for logs; its class says enough.
    if isinstance(cause, asyncpg.InvalidAuthorizationSpecificationError):
        return "the database refused the credentials"
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused"
    if isinstance(cause, asyncpg.PostgresError):
        return str(cause).splitlines()[0]
    return type(cause).__name__ if isinstance(cause, TimeoutError) else (str(cause) or type(cause).__name__)


def _server_settings(application: str, token: str | None) -> Mapping[str, str]:
    settings = {
        "application_name": application,
        "idle_in_transaction_session_timeout": f"{IDLE_IN_TRANSACTION_SECONDS}s",
        **KEEPALIVE,
    }
    return settings if token is None else {**settings, TOKEN_SETTING: token}
