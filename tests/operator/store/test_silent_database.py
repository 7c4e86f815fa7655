"""A database that takes statements and does not answer."""

import os
import signal

import pytest

from support.databases import Database
from triage_contract.exceptions import DatabaseUnreachableError
from triage_operator.store import Store


async def test_a_database_that_falls_silent_is_unreachable_and_used_again_once_it_answers(
    database: Database,
) -> None:
    store = Store(database.url, "cluster", pool_size=1, statement_seconds=0.5)
    try:
        await store.active_runs()
        ((backend,),) = await database.values(
            "SELECT pid FROM pg_stat_activity"
            " WHERE application_name = 'triage-operator' AND datname = current_database()"
        )
        assert isinstance(backend, int)
        os.kill(backend, signal.SIGSTOP)
        try:
            with pytest.raises(DatabaseUnreachableError, match="TimeoutError"):
                await store.active_runs()
            assert await store.active_runs() == ()
        finally:
            os.kill(backend, signal.SIGCONT)
    finally:
        await store.close()
