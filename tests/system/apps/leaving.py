"""An agent whose first attempts, ``EXITS`` of them, leave in the middle of a tool with ``EXIT_CODE``."""

import os

from system.apps.scripted import build


def leave() -> dict[str, bool]:
    """Leave, or stay."""
    if int(os.environ["TRIAGE_EPOCH"]) <= int(os.environ["EXITS"]):
        os._exit(int(os.environ["EXIT_CODE"]))
    return {"stayed": True}


app = build(leave)
