"""An agent that grows: first to ``NEAR`` of its memory limit, then by 200 MiB more.

Between the two it stands still until there is a file ``go`` in ``FOLDER``.
"""

import asyncio
import os
from pathlib import Path

import psutil

from system.apps.scripted import build

FOLDER = Path(os.environ["FOLDER"])
NEAR = 0.8

_held: list[bytes] = []


def _take(size: int) -> int:
    _held.append(b"x" * max(size, 0))
    return len(_held[-1])


async def grow() -> dict[str, int]:
    """Come near the limit."""
    limit = int(os.environ["TRIAGE_MEMORY_LIMIT_BYTES"])
    taken = _take(int(limit * NEAR) - psutil.Process().memory_info().rss)
    while not (FOLDER / "go").exists():
        await asyncio.sleep(0.02)
    return {"taken": taken}


async def grow_on() -> dict[str, int]:
    """Go beyond the limit that there was."""
    taken = _take(200 * 2**20)
    await asyncio.sleep(0.5)  # for a node to see it, which looks from time to time
    return {"taken": taken}


app = build(grow, grow_on)
