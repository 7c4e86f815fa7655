"""Every query of every panel and alert, sent to Prometheus and held against the tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from observe.comparing import EXTRAPOLATION, Checked, Finding, compact, differences, shown
from observe.dashboards import Dashboard, filled_in
from observe.evaluating import Evaluator, NotKnownError
from observe.prometheus import Prometheus
from triage_local.exceptions import ProgramError

EMPTY: Final[Mapping[str, str]] = {
    "Fleet: Starts that are blocked": "every pod can start",
}
"""Panels that show nothing in this incident, and why."""


async def histogram_bounds(prometheus: Prometheus, at: datetime) -> dict[str, tuple[str, ...]]:
    """Give the values of ``le`` of each histogram of runs, by its name."""
    answer = await prometheus.query('count by (__name__, le) ({__name__=~"triage_.+_bucket"})', at)
    bounds = defaultdict(set)
    for series in answer:
        bounds[series.labels["__name__"].removesuffix("_bucket")].add(series.labels["le"])
    return {name: tuple(sorted(values, key=float)) for name, values in bounds.items()}


class Checker:
    """Asks one Prometheus at one time, the end of an incident."""

    def __init__(
        self, prometheus: Prometheus, evaluator: Evaluator, at: datetime, window_seconds: int
    ) -> None:
        self._prometheus = prometheus
        self._evaluator = evaluator
        self._at = at
        self._window_seconds = window_seconds

    async def metrics(self, names: Iterable[str]) -> list[Checked]:
        """Check metrics as they are, also those that are on no panel."""
        return [await self._check(f"metric {name}", name, may_be_empty=True) for name in names]

    async def dashboards(self, dashboards: Sequence[Dashboard]) -> list[Checked]:
        """Check every query of every panel."""
        asked = [
            (f"{dashboard.title}: {panel.title}", target.query)
            for dashboard in dashboards
            for panel in dashboard.panels
            for target in panel.targets
        ]
        return [await self._check(place, query) for place, query in asked]

    async def alerts(self, rules: Sequence[Mapping[str, Any]]) -> list[Checked]:
        """Check the query of every alert: at the end of an incident it gives what still holds."""
        return [
            await self._check(f"query of {rule['name']}", rule["query"], may_be_empty=True) for rule in rules
        ]

    async def _check(self, place: str, query: str, *, may_be_empty: bool = False) -> Checked:
        asked = filled_in(query, self._window_seconds)
        try:
            answer = compact(await self._prometheus.query(asked, self._at))
        except ProgramError as error:
            return Checked(place=place, query=query, finding=Finding.REFUSED, answer="", note=str(error))

        def found(finding: Finding, note: str = "") -> Checked:
            return Checked(place=place, query=query, finding=finding, answer=shown(answer), note=note)

        try:
            expected = self._evaluator.evaluate(asked)
        except NotKnownError as error:
            if answer:
                return found(Finding.ANSWERED, str(error))
            if place in EMPTY or may_be_empty:
                return found(Finding.EMPTY, EMPTY.get(place, "the alert does not hold"))
            return found(Finding.SILENT, str(error))
        off = differences(answer, expected, EXTRAPOLATION if _is_extrapolated(asked) else 0.0)
        if off:
            return found(Finding.WRONG, "; ".join(off))
        if answer or may_be_empty:
            return found(Finding.EQUAL, "" if answer else "nothing of it took place")
        return found(*(Finding.EMPTY, EMPTY[place]) if place in EMPTY else (Finding.SILENT,))


def _is_extrapolated(query: str) -> bool:
    return "rate(" in query or "increase(" in query
