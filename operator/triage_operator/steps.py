"""The steps between which this process may die."""

from collections.abc import Awaitable, Callable
from enum import StrEnum


class Step(StrEnum):
    """What has just been done for good."""

    FENCE_CLOSED = "fence closed"
    ATTEMPT_ENDED = "attempt ended"
    ATTEMPT_RECORDED = "attempt recorded"
    POD_RENAMED = "pod renamed"
    POD_CREATED = "pod created"
    POD_RECORDED = "pod recorded"
    DECISION_CARRIED_OUT = "decision carried out"
    RUN_ENDED = "run ended"
    STATUS_WRITTEN = "status written"


Checkpoint = Callable[[Step], Awaitable[None]]
"""Called after each step. Tests die in it."""


async def go_on(_step: Step) -> None:
    """Do nothing."""
