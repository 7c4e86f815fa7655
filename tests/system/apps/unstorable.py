"""An agent with a tool whose results no database takes as they are, and one that dies in its first attempt."""

import os
from pathlib import Path
from typing import Any

from system.apps.scripted import build


class Thing:
    """Not data."""

    def __str__(self) -> str:
        raise RuntimeError("has no words")


def measure() -> dict[str, Any]:
    """Leave a mark, and give back what cannot be stored."""
    with Path(os.environ["MARKS"]).open("a") as marks:
        marks.write("x")
    circle: list[Any] = []
    circle.append(circle)
    return {
        "nul": "a\0b",
        "surrogate": "a\ud800b",
        "thing": Thing(),
        "bytes": b"\xff",
        "nan": float("nan"),
        "circle": circle,
        Thing(): 1,  # type: ignore[dict-item]
    }


def die() -> dict[str, bool]:
    """End the first attempt."""
    if os.environ["TRIAGE_EPOCH"] == "1":
        os._exit(1)
    return {"died": False}


app = build(measure, die)
