"""An MCP server of pages over its standard streams, that writes down what it did: ``page_server.py LEDGER``."""

import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

LEDGER = Path(sys.argv[-1])

server = MCPServer("pages")


def _done(what: str) -> str:
    with LEDGER.open("a") as ledger:
        ledger.write(f"{what}\n")
    return what


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def read_page(name: str) -> str:
    """Read a page."""
    return _done(f"read {name}")


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put_page(name: str) -> str:
    """Write a page anew."""
    return _done(f"put {name}")


@server.tool()
def file_issue(title: str) -> str:
    """File an issue."""
    return _done(f"file {title}")


if __name__ == "__main__":
    server.run("stdio")
