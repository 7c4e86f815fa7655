"""Event times that only go forward, whatever the clocks of the nodes say."""

import time
from collections.abc import Callable
from typing import Final

_STEP_SECONDS: Final = 0.000_002
"""Two microseconds: the session table keeps one, and a float of this size resolves a quarter of one."""


def monotonic_times(
    last_seconds: float | None,
    *,
    wall: Callable[[], float] = time.time,
    monotonic: Callable[[], float] = time.monotonic,
) -> Callable[[], float]:
    """Make a provider for ``google.adk.platform.time.set_time_provider``.

    ADK orders a session's events by their times, and takes an invocation whose call is not its last event for done with
    it: a node whose clock is behind the one before must not write into the past.

    Args:
        last_seconds: time of the last stored event, in seconds since the epoch; None: there is none.
        wall: the clock that the first time comes from.
        monotonic: the clock that measures from there on.

    Returns:
        A function whose every result is later than the one before and than ``last_seconds``.
    """
    start = monotonic()
    base = wall() if last_seconds is None else max(wall(), last_seconds + _STEP_SECONDS)
    latest = base - _STEP_SECONDS

    def now() -> float:
        nonlocal latest
        latest = max(base + monotonic() - start, latest + _STEP_SECONDS)
        return latest

    return now
