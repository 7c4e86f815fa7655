"""A TCP proxy in front of Postgres that breaks one connection around its first commit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum, auto

from sqlalchemy.engine import make_url

from triage_contract.database.url import DatabaseUrl
from triage_local.ports import HOST

_COMMIT = b"COMMIT"


class Cut(Enum):
    """Where the connection breaks."""

    BEFORE_COMMIT = auto()
    """The server never sees the commit."""
    AFTER_COMMIT = auto()
    """The server has committed, and its client never hears of it."""


@dataclass(slots=True, kw_only=True)
class CuttingProxy:
    """``url`` leads through it. Connections after the one that was cut are left alone."""

    url: DatabaseUrl
    cut: Cut
    server: tuple[str, int]
    has_cut: bool = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection's bytes to and fro, until either end or the cut."""
        from_server, to_server = await asyncio.open_connection(*self.server)
        back = asyncio.create_task(_copy(from_server, writer))
        try:
            while data := await reader.read(65536):
                is_cut = not self.has_cut and _COMMIT in data
                if is_cut:
                    self.has_cut = True
                    back.cancel()
                    await asyncio.wait({back})
                    if self.cut is Cut.BEFORE_COMMIT:
                        return
                to_server.write(data)
                await to_server.drain()
                if is_cut:
                    await from_server.read(65536)  # what the client never gets
                    return
        except ConnectionError:
            return
        finally:
            back.cancel()
            writer.transport.abort()
            to_server.transport.abort()


@asynccontextmanager
async def cutting_proxy(url: DatabaseUrl, cut: Cut) -> AsyncIterator[CuttingProxy]:
    """Listen on a free port of the loopback interface."""
    dsn = make_url(url.dsn)
    assert dsn.host is not None
    assert dsn.port is not None
    proxy = CuttingProxy(url=url, cut=cut, server=(dsn.host, dsn.port))
    listening = await asyncio.start_server(proxy.serve, HOST, 0)
    port = listening.sockets[0].getsockname()[1]
    proxy.url = DatabaseUrl.parse(dsn.set(host=HOST, port=port).render_as_string(hide_password=False))
    async with listening:
        yield proxy


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()
