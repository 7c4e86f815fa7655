"""One Postgres server on a loopback port, with a password, gone without a trace when its owner is."""

import contextlib
import itertools
import logging
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

from triage_local.guard import Guard
from triage_local.ports import HOST, free_port
from triage_local.postgres.binaries import give_away, program, unprivileged
from triage_local.postgres.exceptions import PostgresError

_logger = logging.getLogger(__name__)

USER: Final = "triage"

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0

SETTINGS: Final[Mapping[str, str]] = {
    # The data dies with its owner, so that there is nothing to keep from a power cut. What a killed client or
    # a killed server finds afterwards is the same either way: the kernel has the pages.
    "fsync": "off",
    "full_page_writes": "off",
    # No replication: less to write, and a database is copied as files.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "300",
    "shared_buffers": "64MB",
    # Files in the data folder, not /dev/shm, where they would survive a SIGKILL.
    "dynamic_shared_memory_type": "mmap",
    "unix_socket_directories": "",
    "listen_addresses": HOST,
}


class PostgresServer:
    """A server whose data lives in ``folder`` until ``close``.

    All methods block (the first start for about 0.5 s, a database for 30 ms), and none is for two threads at
    once. Port and password stay the same from one ``start`` to the next, so that a URL stays good while the
    server is away.
    """

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        """Prepare, and start nothing.

        Args:
            folder: An existing folder; ``folder/pgdata`` is made in it. What a killed predecessor left there,
                running or not, is ended and removed by the first start.
            settings: Server settings on top of ``SETTINGS``.
        """
        self._data = folder.resolve() / "pgdata"
        self._log = self._data / "postgres.log"
        self._settings = {**SETTINGS, **(settings or {})}
        self._password = secrets.token_urlsafe(24)
        self._port = 0
        self._names = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: Guard | None = None

    @property
    def port(self) -> int:
        """TCP port on the loopback address; 0 before the first start."""
        return self._port

    @property
    def pid(self) -> int | None:
        """Process id of the postmaster; None while the server is away."""
        return None if self._process is None else self._process.pid

    def url(self, database: str = "postgres") -> str:
        """URL of a database for any client, with the password in it."""
        return f"postgresql://{USER}:{self._password}@{HOST}:{self._port}/{database}"

    def start(self) -> None:
        """Start, the first time with an empty cluster, and return when connections are accepted.

        Raises:
            PostgresError: The server ended instead; the message has the end of its log.
        """
        if self._process is not None:
            return
        if self._guard is None:
            self._initialise()
        guard = self._guard
        assert guard is not None
        command = [*unprivileged(), program("postgres"), "-D", str(self._data), "-p", str(self._port)]
        for name, value in self._settings.items():
            command += ["-c", f"{name}={value}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        # SIGQUIT is Postgres's immediate shutdown: it takes its children and its shared memory with it.
        guard.watch_group(self._process.pid, ending=signal.SIGQUIT)
        self._wait_until_ready(self._process)
        _logger.debug("Postgres accepts connections", extra={"port": self._port, "pid": self._process.pid})

    def stop(self, *, immediate: bool = False) -> None:
        """Stop, and keep data, port and password for the next ``start``.

        Args:
            immediate: As in a crash: connections break at once, and the next start recovers. Otherwise open
                transactions are rolled back and their connections told so.
        """
        if self._process is None or self._guard is None:
            return
        process, self._process = self._process, None
        process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._guard.forget_group(process.pid)

    def close(self) -> None:
        """Stop, and remove the data."""
        self.stop(immediate=True)
        if self._guard is not None:
            self._guard.close()  # removes the folder
            self._guard = None

    def create_database(self, name: str | None = None, *, template: str = "template1") -> str:
        """Create a database and return its URL.

        Args:
            name: By default a fresh one.
            template: A database to copy, to which nobody is connected.
        """
        name = name or f"db_{next(self._names)}"
        self._execute(
            'CREATE DATABASE :"name" TEMPLATE :"template" STRATEGY FILE_COPY;', name=name, template=template
        )
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database, if it exists, and end its connections."""
        self._execute('DROP DATABASE IF EXISTS :"name" WITH (FORCE);', name=name)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _initialise(self) -> None:
        _end_predecessor(self._data)
        if self._data.exists():
            shutil.rmtree(self._data)
        self._port = free_port()
        self._guard = Guard()
        self._data.mkdir(mode=0o700)
        self._guard.watch_folder(self._data)
        give_away(self._data)
        password = self._data.with_name("pgpassword")
        password.touch(mode=0o600)
        try:
            password.write_text(self._password)
            _run(
                [
                    *unprivileged(),
                    program("initdb"),
                    f"--pgdata={self._data}",
                    f"--username={USER}",
                    f"--pwfile={password}",
                    "--auth=scram-sha-256",
                    "--encoding=UTF8",
                    "--locale=C",
                    "--no-sync",
                    "--no-instructions",
                ]
            )
        finally:
            password.unlink()

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            if process.poll() is not None:
                break
            lines = _pid_file(self._data)
            # The eighth line of postmaster.pid is the server's state (src/include/utils/pidfile.h).
            if len(lines) > 7 and int(lines[0]) == process.pid and lines[7].strip() == "ready":
                return
            time.sleep(0.01)
        self.stop(immediate=True)
        raise PostgresError(f"Postgres did not start: {self._log.read_text(errors='replace')[-1000:]}")

    def _execute(self, statement: str, **variables: str) -> None:
        assignments = [f"--set={name}={value}" for name, value in variables.items()]
        _run(
            [program("psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *assignments],
            # Read from standard input, since psql puts no variables into what -c brings.
            standard_input=statement,
            environment={
                "PGHOST": HOST,
                "PGPORT": str(self._port),
                "PGUSER": USER,
                "PGPASSWORD": self._password,
                "PGDATABASE": "postgres",
            },
        )


def _run(
    command: list[str], *, standard_input: str = "", environment: Mapping[str, str] | None = None
) -> None:
    done = subprocess.run(
        command, input=standard_input, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise PostgresError(done.stderr.strip() or f"{Path(command[0]).name} ended with {done.returncode}")


def _pid_file(data: Path) -> list[str]:
    try:
        return (data / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _end_predecessor(data: Path) -> None:
    """End a server that still runs on these data; a stale pid file may name a program that is not ours."""
    lines = _pid_file(data)
    if not lines:
        return
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(int(lines[0]))
        if str(data) not in process.cmdline():
            return
        _logger.warning("Ended a Postgres that its owner left behind", extra={"pid": process.pid})
        process.send_signal(signal.SIGQUIT)
        process.wait(_STOP_SECONDS)
