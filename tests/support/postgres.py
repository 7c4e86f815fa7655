"""The embedded Postgres of a test session."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from triage_local.postgres import PostgresServer


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One server for the session. ``create_database()`` makes a fresh database in 30 ms and gives its URL.

    A test that stops the server starts one of its own for that.
    """
    folder: Path = tmp_path_factory.mktemp("postgres")
    with PostgresServer(folder) as server:
        yield server
