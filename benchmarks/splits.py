"""Where the time of a recovery goes."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from benchmarks.figures import Measured

STAMPS: Final = {
    "lost": "",
    "told": "the attempt is told to leave",
    "released": "its step ends, it hands off",
    "decided": "the operator learns of it",
    "ended": "fence closed, end recorded",
    "opened": "verdict, next attempt recorded",
    "container": "pod made and scheduled, process started",
    "started": "interpreter",
    "loaded": "imports",
    "claimed": "claim",
    "wrote": "first write",
}
"""What happens one after the other, and what the time from one to the next goes into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoveries:
    """Recoveries from losses of one kind, from the loss to the first write, and their parts, in order."""

    whole: Measured
    parts: Sequence[Measured]


def split(name: str, stamped: Sequence[Mapping[str, datetime]]) -> Recoveries:
    """Split recoveries at the ``STAMPS`` that each of them has.

    The time up to one whose forerunner is missing is that of both.
    """
    seen = [stamp for stamp in STAMPS if all(stamp in stamps for stamps in stamped)]

    def measured(name: str, since: str, until: str) -> Measured:
        seconds = [(stamps[until] - stamps[since]).total_seconds() for stamps in stamped]
        return Measured(name=name, seconds=seconds)

    return Recoveries(
        whole=measured(name, seen[0], seen[-1]),
        parts=[measured(_between(since, until), since, until) for since, until in itertools.pairwise(seen)],
    )


def _between(since: str, until: str) -> str:
    names = list(STAMPS)
    passed = names[names.index(since) + 1 : names.index(until) + 1]
    # A process that was not asked to leave did not hand off either.
    if until not in ("told", "released"):
        passed = [stamp for stamp in passed if stamp not in ("told", "released")]
    return ", ".join(STAMPS[stamp] for stamp in passed)
