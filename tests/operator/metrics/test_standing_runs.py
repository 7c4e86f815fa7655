"""How runs stand, as the leader exports it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from triage_operator.metrics.exporting import Metrics
from triage_operator.metrics.runs import standing_samples, unattended_samples, zero_samples
from triage_operator.paths import core, lease, ours, resource_of
from triage_operator.standing import Standing
from triage_operator.status import HELD_UP

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR_AGO = "2026-01-01T11:00:00Z"


def _standing(phase: str | None, reason: str | None = None, **status: Any) -> Standing:
    conditions = [
        {"type": "Finished", "status": "False", "reason": "Running"},
        {
            "type": "Progressing",
            "status": "False" if reason in HELD_UP else "True",
            "reason": reason,
            "lastTransitionTime": HOUR_AGO,
        },
    ]
    return Standing.of(
        {
            "metadata": {"namespace": "docs", "name": "one"},
            "spec": {"agentRef": {"name": "reader"}},
            "status": {
                **({} if phase is None else {"phase": phase}),
                "conditions": conditions if reason else [],
                **status,
            },
        }
    )


def _samples(*runs: Standing) -> dict[tuple[str, ...], float]:
    """Give the values by name and whatever labels are not the agent's."""
    found: dict[tuple[str, ...], float] = {}
    for name, labels, value in standing_samples(runs, NOW):
        assert (labels["namespace"], labels["agent"]) == ("docs", "reader")
        found[name, *(str(text) for key, text in labels.items() if key not in ("namespace", "agent"))] = value
    return found


def test_runs_are_counted_by_phase_with_a_zero_for_each_other_phase() -> None:
    samples = _samples(_standing("Running"), _standing("Running"), _standing("Failed"), _standing(None))
    assert [samples["runs", phase] for phase in ("Running", "Failed", "Waiting")] == [2, 1, 0]


@pytest.mark.parametrize(
    ("phase", "reason", "count", "age"),
    [
        ("Waiting", "InputRequired", "runs_waiting", "oldest_waiting_seconds"),
        ("Pending", "Queued", "runs_queued", "oldest_queued_seconds"),
        ("Recovering", "Queued", "runs_queued", "oldest_queued_seconds"),
    ],
)
def test_what_waits_is_counted_and_the_first_of_it_dated(
    phase: str, reason: str, count: str, age: str
) -> None:
    samples = _samples(_standing(phase, reason), _standing("Running"))
    assert (samples[(count,)], samples[(age,)]) == (1, 3600)
    samples = _samples(_standing("Running"))
    assert (samples[(count,)], samples[(age,)]) == (0, 0)


def test_each_call_in_doubt_of_a_run_that_is_not_over_counts() -> None:
    calls = [
        {"attempt": 1, "since": HOUR_AGO},
        {"attempt": 1, "since": "2026-01-01T11:30:00Z"},
        {"since": HOUR_AGO},
    ]
    samples = _samples(
        _standing("Waiting", "InDoubt", waitingFor=calls), _standing("Failed", waitingFor=calls)
    )
    assert samples[("calls_in_doubt",)] == 2
    assert samples[("oldest_in_doubt_seconds",)] == 3600


def test_a_start_that_is_blocked_counts_by_reason_until_the_run_is_over() -> None:
    samples = _samples(
        _standing("Pending", "StartBlocked"),
        _standing("Failed", "PodRefused"),
        _standing("Pending", "Queued"),
    )
    assert {key: value for key, value in samples.items() if key[0] == "starts_blocked"} == {
        ("starts_blocked", "StartBlocked"): 1
    }


def test_a_run_without_an_attempt_that_lives_is_unattended_unless_it_waits() -> None:
    standings = {
        ("docs", name): _standing(phase, reason)
        for name, phase, reason in (
            ("lost", "Recovering", None),
            ("new", "Pending", "Starting"),
            ("blocked", "Pending", "StartBlocked"),
            ("resting", "Recovering", "BackingOff"),
            ("queued", "Pending", "Queued"),
            ("parked", "Waiting", "InDoubt"),
            ("over", "Succeeded", None),
        )
    }
    unattended = [(key, 10.0 * place) for place, key in enumerate((*standings, ("docs", "gone")))]
    labels = {"namespace": "docs", "agent": "reader"}
    assert [*unattended_samples(standings, unattended)] == [
        ("runs_unattended", labels, 2),
        ("oldest_unattended_seconds", labels, 10.0),
    ]


def test_a_thousand_runs_have_as_many_series_as_one() -> None:
    one, many = ([*standing_samples([_standing("Running")] * count, NOW)] for count in (1, 1000))
    assert len(one) == len(many) < 20


def test_counters_begin_with_a_zero_that_gives_way_to_what_was_counted() -> None:
    labels = {"namespace": "docs", "agent": "reader", "cause": "oom"}
    samples = [*zero_samples([_standing("Running")]), ("losses", labels, 2.0)]
    lines = Metrics().export(samples).decode().splitlines()
    shown = 'triage_losses_total{{agent="reader",cause="{}",namespace="docs"}} {}'
    assert [line for line in lines if "losses_total{" in line and '"oom"' in line] == [
        shown.format("oom", "2.0")
    ]
    assert shown.format("sigkill", "0.0") in lines
    assert 'triage_repairs_total{agent="reader",namespace="docs"} 0.0' in lines


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        (core("docs", "pods"), "pods"),
        (core("docs", "pods", "one", "resize"), "pods/resize"),
        (core(None, "nodes", "one"), "nodes"),
        ("/api/v1/namespaces/kube-system", "namespaces"),
        (ours("docs", "triageruns", "namespaces", "status"), "triageruns/status"),
        (ours(None, "triageruns"), "triageruns"),
        (lease("docs", "one"), "leases"),
        ("/apis/triage-operator.dev/v1alpha1", ""),
    ],
)
def test_a_request_counts_under_its_resource_without_the_objects_name(path: str, resource: str) -> None:
    assert resource_of(path) == resource
