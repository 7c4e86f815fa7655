"""Whether a counter tells the truth over the end of one operator and the start of another."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from observe.comparing import EXTRAPOLATION, Checked, Finding, compact, differences, shown
from observe.evaluating import Vector
from observe.operators import Window
from observe.prometheus import Prometheus
from observe.tables import Tables
from observe.truth import labels_of

# Each operator gives all counters of the database, which never fall: where two are there for the length of a scrape,
# they say the same, and where a scrape was missed, the greatest of those before is the last one.
_COUNTED: Final = (
    "sum by (cause) (max by (namespace, agent, cause) (max_over_time(triage_losses_total[10s])))"
)
_RATE: Final = "sum by (cause) (increase(triage_losses_total[{seconds}s]))"
_CALM: Final = timedelta(seconds=2.5)
"""Before a moment at which what was scraped last is what the tables have: a scrape is up to two seconds old."""
_STEP: Final = timedelta(seconds=0.25)


async def check_restarts(
    prometheus: Prometheus, tables: Tables, windows: Mapping[str, Window]
) -> list[Checked]:
    """Hold the losses that Prometheus counted over each restart against those that the tables have in it.

    The last value less the first one is exact, where ``increase`` extrapolates and does not see what took place
    between the last scrape of one operator and the first one of the next. That it shows no more than took place is
    checked too: a counter that begins anew, or is counted twice, would be a jump in it.
    """
    times = [attempt["ended_at"] for attempt in tables.attempts if attempt["cause"] is not None]
    checked = []
    for what, window in windows.items():
        start, end = _calm_moment(window.start, times), _calm_moment(window.end, times)
        expected = _losses(tables, start, end)
        before = compact(await prometheus.query(_COUNTED, start))
        after = compact(await prometheus.query(_COUNTED, end))
        counted: Vector = {labels: value - before.get(labels, 0.0) for labels, value in after.items()}
        off = differences(counted, expected, 0.0)
        place = f"restart: {what}"
        note = "; ".join(off) or f"{sum(expected.values()):.0f} losses in {(end - start).seconds} s"
        checked.append(
            Checked(
                place=place,
                query=f"last less first of {_COUNTED}",
                finding=Finding.WRONG if off else Finding.EQUAL,
                answer=shown({labels: value for labels, value in counted.items() if value}),
                note=note,
            )
        )
        query = _RATE.format(seconds=int((end - start).total_seconds()))
        rate = compact(await prometheus.query(query, end))
        jumps = [
            f"{shown({labels: value})}, which is more than {expected.get(labels, 0):.0f}"
            for labels, value in rate.items()
            if value > expected.get(labels, 0.0) * (1 + 10 * EXTRAPOLATION) + 1e-6
        ]
        checked.append(
            Checked(
                place=place,
                query=query,
                finding=Finding.WRONG if jumps else Finding.EQUAL,
                answer=shown(rate),
                note="; ".join(jumps) or "no more than took place",
            )
        )
    return checked


def _losses(tables: Tables, start: datetime, end: datetime) -> Vector:
    lost = Counter(
        labels_of({"cause": attempt["cause"]})
        for attempt in tables.attempts
        if attempt["cause"] is not None and start < attempt["ended_at"] <= end
    )
    return {labels: float(count) for labels, count in lost.items()}


def _calm_moment(moment: datetime, times: Sequence[datetime]) -> datetime:
    """Give the last moment until then before which nothing was counted for a while."""
    while any(moment - _CALM < time <= moment for time in times):
        moment -= _STEP
    return moment
