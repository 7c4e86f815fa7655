"""A PgBouncer in front of the tests' Postgres, in transaction mode."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from sqlalchemy.engine import make_url

from triage_local.ports import HOST, free_port
from triage_local.postgres.binaries import unprivileged

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
"""The program; None: it is not installed."""

_SETTINGS = """\
[databases]
* = host={host} port={server_port}
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {users}
pool_mode = transaction
min_pool_size = 4
default_pool_size = 4
; Each transaction meets another backend than the one before, so that whoever relies on one finds out.
server_round_robin = 1
"""


@contextmanager
def transaction_pooler(dsn: str, folder: Path) -> Iterator[str]:
    """Run one in front of the server of ``dsn``, and give the URL of the same database through it."""
    assert PGBOUNCER is not None
    url, port = make_url(dsn), free_port()
    users = folder / "users.txt"
    users.write_text(f'"{url.username}" "{url.password}"\n')
    settings = folder / "pgbouncer.ini"
    settings.write_text(_SETTINGS.format(host=HOST, server_port=url.port, port=port, users=users))
    with (folder / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen(
            [*unprivileged(), PGBOUNCER, str(settings)], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        _wait_until_it_listens(process.pid, port)
        yield url.set(port=port).render_as_string(hide_password=False)
    finally:
        process.kill()
        process.wait()


def _wait_until_it_listens(pid: int, port: int) -> None:
    deadline = time.monotonic() + 10
    process = psutil.Process(pid)
    while port not in {connection.laddr.port for connection in process.net_connections()}:
        assert time.monotonic() < deadline, "pgbouncer does not listen"
        time.sleep(0.01)
