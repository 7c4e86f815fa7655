"""How long runs stood still: from what happened to them to the next thing that they stored."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One loss that was made good. ``case`` is what happened, ``cause`` what the operator found."""

    case: str
    cause: str
    seconds: float


def describe(gaps: Sequence[Gap]) -> list[str]:
    """Give a line for each case: how often, and the median, least and most seconds."""
    by_case = defaultdict(list)
    for gap in gaps:
        by_case[gap.case, gap.cause].append(gap.seconds)
    return [
        f"{case:<44} {cause:<18} n={len(seconds):<3} {median(seconds):6.2f} s"
        + (f" ({min(seconds):.2f} to {max(seconds):.2f})" if len(seconds) > 1 else "")
        for (case, cause), seconds in by_case.items()
    ]
