"""SQLAlchemy's engines on Postgres, and the translation of the errors that it wraps into ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from triage_contract.database import connecting
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUnreachableError
from triage_contract.names import TOKEN_SETTING
from triage_contract.states import Pooler


def open_engine(
    url: DatabaseUrl,
    *,
    application: str,
    token: str | None = None,
    pool_size: int = 2,
    statement_seconds: float | None = None,
) -> AsyncEngine:
    """Make an engine on ``url``; nothing connects before the first use.

    ``application`` becomes the backends' ``application_name``, at most 63 bytes. ``token`` is shown by each
    connection: as a setting of it, or, behind a transaction pooler which drops such settings, in each transaction.
    A statement without an answer for ``statement_seconds`` fails as unreachable: a server whose machine is gone says
    nothing, and the kernel waits a quarter of an hour for it. None: it is waited for.
    """
    pooled = url.pooler is Pooler.TRANSACTION

    async def reconnect(*_args: Any, **_kwargs: Any) -> asyncpg.Connection:
        return await connecting.connect(
            url, application=application, token=token, statement_seconds=statement_seconds
        )

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


@contextmanager
def translated(url: DatabaseUrl) -> Iterator[None]:
    """Raise errors of the driver, also those that SQLAlchemy wrapped, as ``connecting.translated`` does."""
    try:
        with connecting.translated(url):
            yield
    except PoolTimeoutError as error:
        raise DatabaseUnreachableError(f"no free connection to {url}") from error
    except DBAPIError as error:
        cause = driver_error(error)
        known = connecting.translate(cause, url)
        raise error if known is cause else known from error


def driver_error(error: BaseException) -> BaseException:
    """Dig the driver's own error out of what SQLAlchemy wraps it in."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        return error.orig.__cause__ or error.orig
    return error


def _shower(token: str) -> Any:
    statement = text("SELECT set_config(:name, :token, true)").bindparams(name=TOKEN_SETTING, token=token)

    def show(connection: Connection) -> None:
        connection.execute(statement)

    return show
