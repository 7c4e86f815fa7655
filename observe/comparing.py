"""Whether an answer of Prometheus is what the tables say."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from observe.evaluating import Vector
from observe.prometheus import Series
from observe.truth import Labels, labels_of

OF_THE_TARGET: Final = ("__name__", "instance", "job", "pod", "endpoint", "service", "container")
"""Labels that say who was asked, not what happened."""

EXTRAPOLATION: Final = 0.03
"""Share by which ``rate`` and ``increase`` may be above the truth.

Where a series begins or ends within the range, they add up to half a scrape's time on that side to the time that its
samples span. The series of an incident span a minute or more, scraped each second.
"""


class Finding(StrEnum):
    """What came of a query."""

    EQUAL = "as in the tables"
    ANSWERED = "has data"
    EMPTY = "empty, as it should be"
    WRONG = "WRONG"
    SILENT = "NO DATA"
    REFUSED = "REFUSED"

    @property
    def is_good(self) -> bool:
        """Whether it is as it should be."""
        return self in (Finding.EQUAL, Finding.ANSWERED, Finding.EMPTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A query, what it came to, and what is thought of that."""

    place: str
    """The dashboard and panel, or the alert."""
    query: str
    finding: Finding
    answer: str
    note: str = ""
    """What it should be, or why nothing is known of it."""


def compact(answer: Sequence[Series]) -> Vector:
    """Give an answer by what its series are about; where two operators told of the same, their sum."""
    sums: Vector = defaultdict(float)
    for series in answer:
        sums[labels_of_what(series)] += series.value
    return dict(sums)


def labels_of_what(series: Series) -> Labels:
    """Give the labels of a series that say what it is about."""
    return labels_of({name: value for name, value in series.labels.items() if name not in OF_THE_TARGET})


def differences(answer: Vector, expected: Vector, share: float) -> tuple[str, ...]:
    """Say in a line each where an answer is not what is expected; what is not there counts as 0.

    Args:
        answer: From Prometheus.
        expected: From the tables.
        share: By which a value of the answer may be off.
    """
    return tuple(
        f"{shown_labels(labels)}: {got:.6g}, not {wanted:.6g}"
        for labels in sorted({*answer, *expected}, key=sorted)
        if not _close(got := answer.get(labels, 0.0), wanted := expected.get(labels, 0.0), share)
    )


def shown(vector: Vector, most: int = 4) -> str:
    """Show an answer in one line, the largest values first."""
    ranked = sorted(vector.items(), key=lambda item: -item[1] if math.isfinite(item[1]) else 0)
    parts = [f"{shown_labels(labels)} {value:.4g}".strip() for labels, value in ranked[:most]]
    return ", ".join(parts) + (f" and {len(ranked) - most} more" if len(ranked) > most else "")


def shown_labels(labels: Labels | Mapping[str, str]) -> str:
    """Show labels by their values, without what all series have in common."""
    pairs = dict(labels)
    return "/".join(value for name, value in sorted(pairs.items()) if name != "namespace")


def _close(got: float, wanted: float, share: float) -> bool:
    # No recovery at all: 0 by 0 where there is a series, nothing where there is none.
    if math.isnan(got) or math.isnan(wanted):
        return math.isnan(got) == math.isnan(wanted) or 0.0 in (got, wanted)
    return math.isclose(got, wanted, rel_tol=share, abs_tol=1e-6)
