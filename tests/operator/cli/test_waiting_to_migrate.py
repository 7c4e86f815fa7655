"""A migration that begins before its database answers, as in a cluster where both have just been started."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

from sqlalchemy.engine import make_url

from triage_local.postgres import PostgresServer


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
    writer.close()


async def test_a_migration_waits_for_its_database(postgres: PostgresServer) -> None:
    url = make_url(postgres.create_database())
    refused = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal refused
        if refused < 2:
            refused += 1
            writer.close()
            return
        upstream = await asyncio.open_connection(url.host, url.port)
        await asyncio.gather(_pass(reader, upstream[1]), _pass(upstream[0], writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        late = url.set(port=port).render_as_string(hide_password=False)
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("triage-operator")),
            "migrate",
            "--wait-seconds=60",
            env={**os.environ, "TRIAGE_OPERATOR_DATABASE_URL": late},
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()
    assert process.returncode == 0
    assert b"is at revision" in said
    assert refused == 2
