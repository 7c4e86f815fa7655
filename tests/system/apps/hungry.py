"""An agent with a tool that takes 200 MiB."""

import asyncio

from system.apps.scripted import build

HELD_SECONDS = 0.5
"""Long enough for a node to see it, which looks from time to time."""


async def eat() -> dict[str, int]:
    """Fill memory."""
    food = b"x" * (200 * 2**20)
    await asyncio.sleep(HELD_SECONDS)
    return {"eaten": len(food)}


app = build(eat)
