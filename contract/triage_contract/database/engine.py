"""Engines and connections to Postgres, and the translation of driver errors into ours."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

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


def open_engine(
    url: DatabaseUrl, *, application: str, token: str | None = None, pool_size: int = 2
) -> AsyncEngine:
    """Make an engine on ``url``; nothing connects before the first use.

    ``application`` becomes the backends' ``application_name``, at most 63 bytes. ``token`` is shown by each
    connection: as a setting of it, or, behind a transaction pooler which drops such settings, in each transaction.
    """
    pooled = url.pooler is Pooler.TRANSACTION

    async def reconnect(*_args: Any, **_kwargs: Any) -> asyncpg.Connection:
        return await connect(url, application=application, token=token)

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=reconnect,
        # Tokens are parameters, and the text of an error would show them.
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=2,
        pool_pre_ping=True,
        connect_args={"prepared_statement_cache_size": 0, "prepared_statement_name_func": str}
        if pooled
        else {},
    )
    if pooled and token is not None:
        event.listen(engine.sync_engine, "begin", _shower(token))
    return engine


async def connect(url: DatabaseUrl, *, application: str, token: str | None = None) -> asyncpg.Connection:
    """Open one connection, through the pooler where there is one; see ``open_engine``."""
    pooled = url.pooler is Pooler.TRANSACTION
    return await asyncpg.connect(
        url.dsn,
        server_settings={"application_name": application} if pooled else _server_settings(application, token),
        timeout=CONNECT_TIMEOUT_SECONDS,
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
    """Raise errors of the driver, also those that SQLAlchemy wrapped, as errors of the contract.

    Raises:
        DatabaseUnreachableError: refused, timed out, shut down, wrong credentials.
        FencedError, AlreadyClaimedError, CallRunningError, SessionStaleError, SessionMissingError: what our functions
            and triggers say.
        SchemaError: our tables are missing or too old.
    """
    try:
        yield
    except PoolTimeoutError as error:
        raise DatabaseUnreachableError(f"no free connection to {url}") from error
    except (
        DBAPIError,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
        asyncpg.InternalClientError,
        OSError,
        TimeoutError,
    ) as error:
        raise translate(error, url) from error


def translate(error: BaseException, url: DatabaseUrl) -> BaseException:
    """Give the contract's error for one of the driver's, or the error itself where there is none."""
    cause = driver_error(error)
    if isinstance(cause, asyncpg.PostgresError) and cause.sqlstate in _BY_SQLSTATE:
        return _BY_SQLSTATE[cause.sqlstate](str(cause))
    if isinstance(cause, _SCHEMA_MISSING):
        return SchemaError(f"{url} lacks our tables, or has older ones: run `triage-operator migrate`")
    if isinstance(cause, _UNREACHABLE):
        return DatabaseUnreachableError(f"{url}: {_reason(cause)}")
    return error


def driver_error(error: BaseException) -> BaseException:
    """Dig the driver's own error out of what SQLAlchemy wraps it in."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return error.orig.__cause__ or error.orig
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


def _shower(token: str) -> Any:
    statement = text("SELECT set_config(:name, :token, true)").bindparams(name=TOKEN_SETTING, token=token)

    def show(connection: Connection) -> None:
        connection.execute(statement)

    return show
