"""All metrics of the operator.

Those about runs are counted in the database, in the transaction of what they count: they survive restarts, and
only the leader exports them, so that a sum over all operators is right. Labels never name a run.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from triage_contract.states import Phase
from triage_operator.store import RECOVERY_BOUNDS

Totals = Iterable[tuple[str, Mapping[str, object], float]]
"""Counters as the database keeps them: name, labels, value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A metric. Its name is exported with ``triage_`` before it, and a counter's with ``_total`` behind it."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


RUNS: Final = Declared(name="runs", help="TriageRuns that exist, by phase.", labels=("phase",))
"""From the API server, as the leader last saw them."""

COUNTERS: Final = (
    Declared(
        name="attempts",
        help="Attempts that ended, by outcome and by cause; the cause is empty where nothing was lost.",
        labels=("namespace", "outcome", "cause"),
    ),
    Declared(name="losses", help="Attempts that were lost, by cause.", labels=("namespace", "cause")),
    Declared(
        name="resumes",
        help="Pods made to go on with a run, by the cause of the attempt before.",
        labels=("namespace", "cause"),
    ),
    Declared(
        name="resumes_refused",
        help="Runs with a lost attempt that were ended instead of resumed, by reason.",
        labels=("namespace", "reason"),
    ),
    Declared(
        name="runs_ended",
        help="Runs that ended, by state and reason.",
        labels=("namespace", "state", "reason"),
    ),
    Declared(
        name="memory_raises",
        help="Memory limits of running attempts that were raised in place.",
        labels=("namespace",),
    ),
    Declared(
        name="duplicates_suppressed",
        help="Repeated tool calls without a second effect, by tool and by what suppressed it.",
        labels=("namespace", "tool", "where"),
    ),
)
"""Kept in the database under the same names."""

RECOVERY: Final = Declared(
    name="recovery_seconds",
    help="Seconds from the detection of a loss to the next attempt's first durable write, by cause.",
    labels=("namespace", "cause"),
)
"""A histogram that is kept in the database, with ``RECOVERY_BOUNDS``."""

RECONCILES: Final = Declared(
    name="reconcile_seconds",
    help="Seconds that a pass over one run took, by what was done.",
    labels=("action",),
)
"""A histogram of this process, with ``RECONCILE_BOUNDS``."""

RECONCILE_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

WATCH_AGE: Final = Declared(
    name="watch_age_seconds",
    help="Seconds since the API server was last heard on a watch, by resource.",
    labels=("resource",),
)

GAUGES: Final = (
    Declared(name="leader", help="1 for the operator that leads, 0 for one that stands by."),
    Declared(name="queue_depth", help="Runs that wait for a worker."),
    Declared(
        name="sweep_age_seconds",
        help="Seconds since the last complete comparison of what should be with what is.",
    ),
    Declared(
        name="look_age_seconds",
        help="Seconds since the database last told the attempts' signs of life.",
    ),
)
"""What each operator says of itself at a scrape."""


class Metrics:
    """One process's metrics."""

    def __init__(self) -> None:
        # When a series began is of no use to anybody here, and one more series for each.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._runs = _RunMetrics()
        self._registry.register(self._runs)
        self._reconciles = Histogram(
            _full(RECONCILES),
            RECONCILES.help,
            RECONCILES.labels,
            registry=self._registry,
            buckets=RECONCILE_BOUNDS,
        )
        self._watches = self._gauge(WATCH_AGE)
        self._values = {gauge.name: self._gauge(gauge) for gauge in GAUGES}

    @contextmanager
    def reconciling(self) -> Iterator[Callable[[str], None]]:
        """Measure a pass; call what this gives with the name of what was done."""
        started = time.perf_counter()

        def done(action: str) -> None:
            self._reconciles.labels(action).observe(time.perf_counter() - started)

        yield done

    def read_at_scrape(self, name: str, value: Callable[[], float]) -> None:
        """Export what a function gives at each scrape as one of ``GAUGES``."""
        self._values[name].set_function(value)

    def watch_age(self, resource: str, age_seconds: Callable[[], float]) -> None:
        """Export the age of a watch."""
        self._watches.labels(resource).set_function(age_seconds)

    def _gauge(self, gauge: Declared) -> Gauge:
        return Gauge(_full(gauge), gauge.help, gauge.labels, registry=self._registry)

    def export(self, totals: Totals, phases: Iterable[str]) -> bytes:
        """Give the text of one scrape: with the counters of the database, and a phase for each run there is."""
        self._runs.totals = totals
        self._runs.phases = Counter(phases)
        return generate_latest(self._registry)


class _RunMetrics(Collector):
    def __init__(self) -> None:
        self.totals: Totals = ()
        self.phases: Counter[str] = Counter()

    def collect(self) -> Iterator[Metric]:
        phases = GaugeMetricFamily(_full(RUNS), RUNS.help, labels=RUNS.labels)
        for phase in Phase:
            phases.add_metric((phase,), self.phases[phase])
        yield phases
        totals = tuple(self.totals)
        for counter in COUNTERS:
            family = CounterMetricFamily(_full(counter), counter.help, labels=counter.labels)
            for name, labels, value in totals:
                if name == counter.name:
                    family.add_metric(_values(counter, labels), value)
            yield family
        yield _recovery(totals)


def _recovery(totals: Totals) -> HistogramMetricFamily:
    family = HistogramMetricFamily(_full(RECOVERY), RECOVERY.help, labels=RECOVERY.labels)
    sums: dict[tuple[str, ...], float] = {}
    buckets: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for name, labels, value in totals:
        if name == f"{RECOVERY.name}_sum":
            sums[_values(RECOVERY, labels)] = value
        elif name == f"{RECOVERY.name}_bucket":
            buckets[_values(RECOVERY, labels)][_go_string(float(str(labels["le"])))] = value
    bounds = [_go_string(bound) for bound in (*RECOVERY_BOUNDS, float("inf"))]
    for values, counts in buckets.items():
        # A bucket that nothing fell into has no row.
        family.add_metric(
            values, [(bound, counts.get(bound, 0.0)) for bound in bounds], sum_value=sums.get(values, 0.0)
        )
    return family


def _go_string(number: float) -> str:
    return str(floatToGoString(number))  # type: ignore[no-untyped-call]


def _values(total: Declared, labels: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(labels.get(label, "")) for label in total.labels)


def _full(metric: Declared) -> str:
    return f"triage_{metric.name}"
