"""When the next attempt may start: the first resume after progress at once, each further one later than the last."""

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from triage_contract.api.agent import Backoff
from triage_contract.database.rows import AttemptRow
from triage_contract.states import Outcome

JITTER: Final = 0.25
"""Share of a wait that is taken off at most, so that runs that were lost together do not come back together."""


def ready_at(
    run_uid: str, attempts: Sequence[AttemptRow], backoff: Backoff, retry_after_limit_seconds: float
) -> datetime | None:
    """Give when the next attempt may start; None: at once, for there was none before.

    A hand-off is no failure: its successor starts at once. A wait that the model's endpoint asked for is
    kept, up to ``retry_after_limit_seconds``. The jitter comes from the run and the attempt, hence stays the
    same at every look.
    """
    newest = attempts[-1] if attempts else None
    if newest is None or newest.ended_at is None:
        return None
    seconds = 0.0
    if newest.outcome is not Outcome.HANDED_OFF:
        asked_for = min(newest.retry_after_seconds or 0.0, retry_after_limit_seconds)
        seconds = max(asked_for, _delay(resumes_in_a_row(attempts), backoff, f"{run_uid}/{newest.epoch}"))
    return newest.ended_at + timedelta(seconds=seconds)


def resumes_in_a_row(attempts: Sequence[AttemptRow]) -> int:
    """Give which resume the next one is, counted from the last attempt that made progress, hand-offs left out."""
    count = 0
    for attempt in reversed(attempts):
        count += attempt.outcome is not Outcome.HANDED_OFF
        if attempt.progressed:
            break
    return count


def _delay(resume: int, backoff: Backoff, seed: str) -> float:
    if resume <= 1:
        return 0.0
    # Beyond this exponent every factor has passed every maximum, or is 1.
    seconds = min(backoff.max_seconds, backoff.initial_seconds * backoff.factor ** min(resume - 2, 300))
    digest = hashlib.sha256(seed.encode()).digest()
    return seconds * (1 - JITTER * int.from_bytes(digest[:4]) / 2**32)
