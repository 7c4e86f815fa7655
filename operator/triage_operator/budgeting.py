"""The no-progress budget: which attempts count against it, and whether it is used up."""

from collections.abc import Sequence
from typing import Final

from triage_contract.api import TriageAgent
from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause
from triage_operator.memory import is_at_cap

COUNTED: Final = frozenset(
    {
        Cause.SIGKILL,
        Cause.APP_ERROR,
        Cause.EXIT0_UNFINISHED,
        Cause.STORAGE_LIMIT,
        Cause.UNRESPONSIVE,
        Cause.STALLED,
    }
)
"""Causes that are the attempt's own. ``oom`` is one too, once memory cannot be raised any more; all others
are the infrastructure's or the model's."""


def counts(cause: Cause | None, attempt: AttemptRow, agent: TriageAgent | None) -> bool:
    """Say whether a lost attempt counts. Cause None: not known yet, and counts until it is."""
    if cause is Cause.OOM:
        return agent is None or is_at_cap(attempt, agent)
    return cause is None or cause in COUNTED


def no_progress(attempts: Sequence[AttemptRow]) -> int:
    """Count the ended attempts since the last progress that count; those that do not count are passed over."""
    count = 0
    for attempt in reversed(attempts):
        if attempt.progressed:
            break
        count += bool(attempt.counted)
    return count
