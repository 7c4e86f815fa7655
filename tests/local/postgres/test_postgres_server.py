"""The embedded Postgres: databases, absence and return, and nothing left behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest

from triage_local.postgres import PostgresError, PostgresServer


async def _value(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_each_database_is_empty_and_its_own(postgres: PostgresServer) -> None:
    first, second = postgres.create_database(), postgres.create_database()
    await _value(first, "CREATE TABLE pages (name text)")
    assert await _value(first, "SELECT to_regclass('pages')") == "pages"
    assert await _value(second, "SELECT to_regclass('pages')") is None


async def test_a_database_is_copied_from_a_template(postgres: PostgresServer) -> None:
    template = postgres.create_database("with_pages")
    await _value(template, "CREATE TABLE pages AS SELECT 'tokens' AS name")
    assert await _value(postgres.create_database(template="with_pages"), "SELECT name FROM pages") == "tokens"


async def test_a_dropped_database_is_gone_although_somebody_is_connected(postgres: PostgresServer) -> None:
    url = postgres.create_database("to_drop")
    connection = await asyncpg.connect(url)
    postgres.drop_database("to_drop")
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(url)
    connection.terminate()
    postgres.drop_database("to_drop")


def test_a_refused_statement_says_why_and_not_the_password(postgres: PostgresServer) -> None:
    postgres.create_database('odd "name"; --')
    with pytest.raises(PostgresError, match="already exists") as caught:
        postgres.create_database('odd "name"; --')
    assert postgres.url().split(":")[2].split("@")[0] not in str(caught.value)


async def test_a_wrong_password_is_refused(postgres: PostgresServer) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(f"postgresql://triage:wrong@127.0.0.1:{postgres.port}/postgres")


@pytest.mark.parametrize("immediate", [False, True])
async def test_a_url_stays_good_while_the_server_is_away(tmp_path: Path, immediate: bool) -> None:
    with PostgresServer(tmp_path) as server:
        url = server.create_database()
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE pages AS SELECT 'tokens' AS name")
        server.stop(immediate=immediate)
        with pytest.raises(ConnectionRefusedError):
            await asyncpg.connect(url)
        server.start()
        assert await _value(url, "SELECT name FROM pages") == "tokens"
        connection.terminate()
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_it_refuses_is_named(tmp_path: Path) -> None:
    server = PostgresServer(tmp_path, settings={"no_such_setting": "1"})
    with pytest.raises(PostgresError, match="no_such_setting"):
        server.start()
    server.close()
    assert list(tmp_path.iterdir()) == []


_OWNER = """
import pathlib, sys, time
from triage_local.postgres import PostgresServer
server = PostgresServer(pathlib.Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(60)
"""


def _start_owner(folder: Path) -> tuple[subprocess.Popen[str], psutil.Process]:
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert owner.stdout is not None
    with owner.stdout:
        return owner, psutil.Process(int(owner.stdout.readline()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_the_owner_dies(tmp_path: Path, number: signal.Signals) -> None:
    owner, server = _start_owner(tmp_path)
    guard = next(child for child in psutil.Process(owner.pid).children() if child.pid != server.pid)
    family = [server, *server.children(recursive=True), guard]
    owner.send_signal(number)
    owner.wait()
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert list(tmp_path.iterdir()) == []


def test_a_server_left_behind_is_ended_by_the_next_one(tmp_path: Path) -> None:
    owner, left_behind = _start_owner(tmp_path)
    for child in psutil.Process(owner.pid).children():
        if child.pid != left_behind.pid:
            child.kill()  # the guard, so that nobody cleans up
    owner.kill()
    owner.wait()
    with PostgresServer(tmp_path) as server:
        assert not left_behind.is_running()
        assert server.create_database("fresh").endswith("/fresh")


def test_a_stale_pid_file_does_no_harm_to_the_process_that_has_the_number_now(tmp_path: Path) -> None:
    (tmp_path / "pgdata").mkdir()
    (tmp_path / "pgdata" / "postmaster.pid").write_text(f"{os.getpid()}\n")
    with PostgresServer(tmp_path) as server:
        assert server.pid != os.getpid()
