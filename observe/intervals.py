"""Panels that show what took place in each interval, and marks: over the whole incident, not at its end alone.

Whoever leads, and while nobody does, an event belongs to as many points of such a curve as its interval has steps, and
a mark is made once.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from observe.comparing import EXTRAPOLATION, Checked, Finding, labels_of_what, shown
from observe.dashboards import Dashboard, filled_in
from observe.evaluating import Evaluator, NotKnownError, Vector
from observe.operators import Window
from observe.prometheus import Point, Prometheus

RATE_INTERVAL: Final = re.compile(r"\$(?:__rate_interval|\{__rate_interval\})")

_INTERVAL_SECONDS: Final = 15
_STEP_SECONDS: Final = 1
_MARK_SECONDS: Final = 61
"""For how long a mark stands: its query looks a minute back."""
_AFTERWARDS: Final = timedelta(seconds=75)
"""For how long a query may look back at the incident: its last value stands for five minutes."""


async def check_intervals(
    prometheus: Prometheus,
    evaluator: Evaluator,
    dashboards: Sequence[Dashboard],
    window: Window,
    window_seconds: int,
) -> list[Checked]:
    """Check each curve of counts by interval: all of its points together show no more than took place."""
    checked = []
    for dashboard in dashboards:
        for panel in dashboard.panels:
            for target in panel.targets:
                if not RATE_INTERVAL.search(target.query) or "histogram_quantile" in target.query:
                    continue
                try:
                    expected = evaluator.evaluate(filled_in(target.query, window_seconds))
                except NotKnownError:
                    continue
                query = filled_in(RATE_INTERVAL.sub(f"{_INTERVAL_SECONDS}s", target.query), window_seconds)
                place = f"{dashboard.title}: {panel.title}, by interval"
                checked.append(await _check(prometheus, place, query, expected, window))
    return checked


async def _check(prometheus: Prometheus, place: str, query: str, expected: Vector, window: Window) -> Checked:
    answer = await prometheus.query_range(
        query, window.start, window.end + timedelta(seconds=_INTERVAL_SECONDS), _STEP_SECONDS
    )
    sums: Vector = defaultdict(float)
    for series in answer:
        steps = _INTERVAL_SECONDS / _STEP_SECONDS
        sums[labels_of_what(series)] += sum(value for _, value in series.points) / steps
    jumps = [
        f"{shown({labels: value})}, which is more than {expected.get(labels, 0.0):g}"
        for labels, value in sums.items()
        if value > expected.get(labels, 0.0) * (1 + EXTRAPOLATION) + 1e-6
    ]
    took_place = sum(expected.values())
    is_seen = not took_place or sum(sums.values()) > took_place / 2
    return Checked(
        place=place,
        query=query,
        finding=Finding.WRONG if jumps else Finding.EQUAL if is_seen else Finding.SILENT,
        answer=shown({labels: value for labels, value in sums.items() if value}),
        note="; ".join(jumps) or f"it was {took_place:g}",
    )


def marked(points: Sequence[Point]) -> list[float]:
    """Give the times at which the marks of a series begin; while nobody leads, a mark is interrupted."""
    times: list[float] = []
    for time, value in points:
        if value and (not times or time - times[-1] > _MARK_SECONDS):
            times.append(time)
    return times


async def check_marks(
    prometheus: Prometheus, dashboards: Sequence[Dashboard], window: Window
) -> list[Checked]:
    """Check that what is marked over the panels is there, and marked once, also when the operator starts again."""
    marks = {mark.query: mark for dashboard in dashboards for mark in dashboard.annotations}
    checked = []
    for mark in marks.values():
        answer = await prometheus.query_range(
            mark.query, window.start, window.end + _AFTERWARDS, _STEP_SECONDS
        )
        begun: Vector = defaultdict(float)
        for series in answer:
            begun[labels_of_what(series)] += len(marked(series.points))
        again = {labels: times for labels, times in begun.items() if times > 1}
        checked.append(
            Checked(
                place=f"marks: {mark.legend}",
                query=mark.query,
                finding=Finding.WRONG if again else Finding.EQUAL if begun else Finding.SILENT,
                answer=shown(begun),
                note=f"marked more than once: {shown(again)}" if again else "each of them once",
            )
        )
    return checked
