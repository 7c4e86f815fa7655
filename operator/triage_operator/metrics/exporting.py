"""One process's metrics, and their text.

Those about runs are counted in the database, in the transaction of what they count: they survive restarts, and
only the leader exports them, so that a sum over all operators is right.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from triage_operator.metrics import declared
from triage_operator.metrics.declared import Declared
from triage_operator.metrics.runs import Sample


class Metrics:
    """One process's metrics."""

    def __init__(self) -> None:
        # When a series began is of no use to anybody here, and one more series for each.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._runs = _RunMetrics()
        self._registry.register(self._runs)
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self._reconciles = self._histogram(declared.RECONCILES)
        self._statements = self._histogram(declared.STATEMENTS)
        self._request_seconds = self._histogram(declared.REQUEST_SECONDS)
        requests = declared.REQUESTS
        self._requests = Counter(requests.full_name, requests.help, requests.labels, registry=self._registry)
        self._watches = self._gauge(declared.WATCH_AGE)
        self._connections = self._gauge(declared.CONNECTIONS)
        self._values = {gauge.name: self._gauge(gauge) for gauge in declared.GAUGES}
        self._gauge(declared.BUILD).labels(version("triage-operator")).set(1)

    @contextmanager
    def reconciling(self) -> Iterator[Callable[[str], None]]:
        """Measure a pass; call what this gives with the name of what was done."""
        started = time.perf_counter()

        def done(action: str) -> None:
            self._reconciles.labels(action).observe(time.perf_counter() - started)

        yield done

    def statement(self, operation: str, seconds: float) -> None:
        """Take note of what the database was asked for, and how long that took."""
        self._statements.labels(operation).observe(seconds)

    def request(self, verb: str, resource: str, code: str, seconds: float | None) -> None:
        """Take note of a request to the API server; ``seconds`` None: a watch, which takes as long as it lives."""
        self._requests.labels(verb, resource, code).inc()
        if seconds is not None:
            self._request_seconds.labels(verb).observe(seconds)

    def read_at_scrape(self, name: str, value: Callable[[], float]) -> None:
        """Export what a function gives at each scrape as one of ``declared.GAUGES``."""
        self._values[name].set_function(value)

    def watch_age(self, resource: str, age_seconds: Callable[[], float]) -> None:
        """Export the age of a watch."""
        self._watches.labels(resource).set_function(age_seconds)

    def connections(self, state: str, count: Callable[[], float]) -> None:
        """Export the number of connections in a state."""
        self._connections.labels(state).set_function(count)

    def export(self, samples: Iterable[Sample]) -> bytes:
        """Give the text of one scrape, with what is said of runs: nothing, for one that does not lead."""
        self._runs.samples = tuple(samples)
        return generate_latest(self._registry)

    def _gauge(self, gauge: Declared) -> Gauge:
        return Gauge(gauge.full_name, gauge.help, gauge.labels, registry=self._registry)

    def _histogram(self, histogram: Declared) -> Histogram:
        return Histogram(
            histogram.full_name,
            histogram.help,
            histogram.labels,
            registry=self._registry,
            buckets=histogram.bounds,
        )


class _RunMetrics(Collector):
    def __init__(self) -> None:
        self.samples: tuple[Sample, ...] = ()

    def collect(self) -> Iterator[Metric]:
        # What a newer release keeps in the database has no declaration here, and is left out.
        by_name: dict[str, list[tuple[Mapping[str, object], float]]] = defaultdict(list)
        for name, labels, value in self.samples:
            by_name[name].append((labels, value))
        for metric in declared.COUNTERS:
            counter = CounterMetricFamily(metric.full_name, metric.help, labels=metric.labels)
            # A zero that is said beforehand gives way to what was counted.
            for values, value in {
                _values(metric, labels): value for labels, value in by_name[metric.name]
            }.items():
                counter.add_metric(values, value)
            yield counter
        for metric in declared.STANDING:
            gauge = GaugeMetricFamily(metric.full_name, metric.help, labels=metric.labels)
            for labels, value in by_name[metric.name]:
                gauge.add_metric(_values(metric, labels), value)
            yield gauge
        for metric in declared.HISTOGRAMS:
            yield _histogram(metric, by_name[f"{metric.name}_bucket"], by_name[f"{metric.name}_sum"])


_Values = Iterable[tuple[Mapping[str, object], float]]


def _histogram(metric: Declared, bucket_values: _Values, sum_values: _Values) -> HistogramMetricFamily:
    family = HistogramMetricFamily(metric.full_name, metric.help, labels=metric.labels)
    sums = {_values(metric, labels): value for labels, value in sum_values}
    buckets: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    for labels, value in bucket_values:
        buckets[_values(metric, labels)][_go_string(float(str(labels["le"])))] = value
    bounds = [_go_string(bound) for bound in (*metric.bounds, float("inf"))]
    for values, counts in buckets.items():
        # A bucket that nothing fell into has no row.
        family.add_metric(
            values, [(bound, counts.get(bound, 0.0)) for bound in bounds], sum_value=sums.get(values, 0.0)
        )
    return family


def _go_string(number: float) -> str:
    return str(floatToGoString(number))  # type: ignore[no-untyped-call]


def _values(metric: Declared, labels: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(labels.get(label, "")) for label in metric.labels)
