"""Errors of the driver become ours."""

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import InternalError

from support.databases import Database
from triage_contract.database.engine import translated
from triage_contract.exceptions import DatabaseUnreachableError


@pytest.mark.parametrize("is_wrapped", [False, True])
async def test_a_statement_on_a_connection_that_is_about_to_break_finds_the_database_unreachable(
    database: Database, is_wrapped: bool
) -> None:
    # asyncpg says so where the server's last message has come, and the end of the connection has not.
    torn = asyncpg.InternalClientError("cannot switch to state 12; another operation (2) is in progress")
    error: Exception = InternalError("SELECT 1", None, torn) if is_wrapped else torn
    with pytest.raises(DatabaseUnreachableError, match="another operation"), translated(database.url):
        raise error


async def test_a_backend_that_is_ended_is_an_unreachable_database(database: Database) -> None:
    with pytest.raises(DatabaseUnreachableError), translated(database.url):
        async with database.engine.connect() as connection:
            await connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
