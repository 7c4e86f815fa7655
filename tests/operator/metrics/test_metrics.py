"""The metrics: what a scrape says."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from triage_operator.metrics.declared import COUNTERS, DECLARED, LABELS
from triage_operator.metrics.exporting import Metrics

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _samples(text: bytes) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def test_counters_of_the_database_are_exported_with_their_labels() -> None:
    labels = {"namespace": "docs", "agent": "default", "cause": "oom"}
    samples = _samples(Metrics().export([("losses", labels, 3.0)]))
    assert (
        samples["triage_losses_total", (("agent", "default"), ("cause", "oom"), ("namespace", "docs"))] == 3.0
    )


def test_a_counter_that_a_newer_release_keeps_is_left_out() -> None:
    samples = _samples(Metrics().export([("from_the_future", {}, 3.0)]))
    assert not any("future" in name for name, _ in samples)


def test_the_recovery_histogram_is_whole_although_empty_buckets_have_no_row() -> None:
    labels: dict[str, object] = {"namespace": "docs", "agent": "default", "cause": "sigkill"}
    totals: list[tuple[str, dict[str, object], float]] = [
        ("recovery_seconds_sum", labels, 41.5),
        *(("recovery_seconds_bucket", {**labels, "le": le}, 1.0) for le in (2, 3, 5, 10, 20, 30)),
        *(("recovery_seconds_bucket", {**labels, "le": le}, 2.0) for le in (60, 120, 300, 600, "+Inf")),
    ]
    samples = _samples(Metrics().export(totals))
    shown = (("agent", "default"), ("cause", "sigkill"), ("namespace", "docs"))
    assert samples["triage_recovery_seconds_count", shown] == 2
    assert samples["triage_recovery_seconds_sum", shown] == 41.5
    assert samples["triage_recovery_seconds_bucket", (*shown[:2], ("le", "1.0"), *shown[2:])] == 0
    assert samples["triage_recovery_seconds_bucket", (*shown[:2], ("le", "2.0"), *shown[2:])] == 1
    assert samples["triage_recovery_seconds_bucket", (*shown[:2], ("le", "60.0"), *shown[2:])] == 2


def test_values_are_read_at_the_scrape() -> None:
    metrics = Metrics()
    depth = [1.0]
    metrics.read_at_scrape("queue_depth", lambda: depth[0])
    metrics.watch_age("pods", lambda: 2.5)
    assert _samples(metrics.export(()))["triage_queue_depth", ()] == 1.0
    depth[0] = 7.0
    samples = _samples(metrics.export(()))
    assert samples["triage_queue_depth", ()] == 7.0
    assert samples["triage_watch_age_seconds", (("resource", "pods"),)] == 2.5


def test_a_pass_is_measured_by_what_was_done() -> None:
    metrics = Metrics()
    with metrics.reconciling() as done:
        done("Wait")
    samples = _samples(metrics.export(()))
    assert samples["triage_reconcile_seconds_count", (("action", "Wait"),)] == 1


@pytest.mark.parametrize("name", [counter.name for counter in COUNTERS])
def test_counters_are_named_as_prometheus_wants_them(name: str) -> None:
    assert not name.endswith("_total")
    assert name == name.lower()


def test_no_metric_has_a_label_that_names_a_run_and_each_is_bounded() -> None:
    labels = {label for metric in DECLARED for label in metric.labels}
    assert not {"run", "name", "pod", "uid", "session", "epoch"} & labels
    assert labels == set(LABELS)
    assert all(metric.help.endswith(".") for metric in DECLARED)
