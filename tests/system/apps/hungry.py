"""An agent with a tool that takes 200 MiB."""

from system.apps.scripted import build


def eat() -> dict[str, int]:
    """Fill memory."""
    return {"eaten": len(bytearray(b"x") * (200 * 2**20))}


app = build(eat)
