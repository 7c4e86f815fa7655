"""Metrics counted from rows: one run that lost an attempt, and one that was given up."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from observe.tables import Tables
from observe.truth import count_samples, labels_of

Row = dict[str, Any]


def at(seconds: float) -> datetime:
    return datetime(2026, 3, 1, 10, tzinfo=UTC) + timedelta(seconds=seconds)


def a_run(name: str, state: str) -> Row:
    session = {"app_name": "docs/default", "user_id": "triage", "session_id": f"run-{name}"}
    return {
        **session,
        "id": name,
        "invocation_id": f"inv-{name}",
        "namespace": "docs",
        "agent": "default",
        "state": state,
        "root": {"fingerprint": "0a1b"},
        "created_at": at(0),
        "ended_at": at(60),
    }


def an_attempt(run: str, epoch: int, **columns: Any) -> Row:
    empty = dict.fromkeys(
        (
            "cause",
            "outcome",
            "lost_at",
            "scheduled_at",
            "started_at",
            "claimed_at",
            "first_write_at",
            "fenced_at",
        )
    )
    return {
        "run_id": run,
        "epoch": epoch,
        "pod_uid": f"{run}-{epoch}",
        "created_at": at(0),
        **empty,
        **columns,
    }


def an_object(name: str, phase: str, reason: str) -> Row:
    return {
        "metadata": {"namespace": "docs", "uid": name},
        "spec": {"agentRef": {"name": "default"}, "decisions": [{"action": "Done"}]},
        "status": {"phase": phase, "conditions": [{"type": "Finished", "reason": reason}]},
    }


def _of(run: Row) -> Row:
    return {column: run[column] for column in ("app_name", "user_id", "session_id", "invocation_id")}


KEPT, LOST = a_run("kept", "succeeded"), a_run("lost", "failed")
TABLES = Tables(
    runs=(KEPT, LOST),
    attempts=(
        an_attempt(
            "kept", 1, outcome="lost", cause="oom", lost_at=at(10), claimed_at=at(2), first_write_at=at(3)
        ),
        an_attempt("kept", 2, outcome="finished", first_write_at=at(14.5)),
        an_attempt("lost", 1, outcome="lost", cause="sigkill", lost_at=at(5), fenced_at=at(6)),
    ),
    tool_calls=(
        {
            **_of(KEPT),
            "tool": "file_issue",
            "state": "done",
            "epoch": 1,
            "begun_at": at(4),
            "ended_at": at(6),
            "suppressed_by_journal": 1,
            "suppressed_by_tracker": 0,
        },
    ),
    model_replies=(
        {**_of(KEPT), "epoch": 1, "prompt_tokens": 100, "output_tokens": 10, "seconds": 1.5},
        {**_of(KEPT), "epoch": 2, "prompt_tokens": 200, "output_tokens": 20, "seconds": 2.5},
    ),
    repairs=(),
    objects=(an_object("kept", "Succeeded", "Completed"), an_object("lost", "Failed", "NoProgress")),
    agents=({"metadata": {"namespace": "docs", "name": "default"}, "spec": {"image": "agent:1"}},),
)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("losses_total", {("cause", "oom"): 1, ("cause", "sigkill"): 1}),
        ("resumes_total", {("cause", "oom"): 1}),
        ("resumes_refused_total", {("reason", "NoProgress"): 1}),
        ("replies_replayed_total", {(): 1}),
        ("tokens_saved_total", {("kind", "prompt"): 100, ("kind", "output"): 10}),
        ("seconds_saved_total", {("kind", "model"): 1.5, ("kind", "tool"): 2}),
        ("fence_refusals_total", {(): 1}),
        ("recovery_seconds_sum", {("cause", "oom"): 4.5}),
        ("decisions_total", {("action", "Done"): 2}),
        ("runs", {("phase", "Succeeded"): 1, ("phase", "Failed"): 1}),
        ("runs_queued", {}),
    ],
)
def test_a_metric_is_what_the_rows_say(metric: str, expected: Mapping[tuple[str, ...], float]) -> None:
    found = count_samples(TABLES, {})[f"triage_{metric}"]
    run = {"namespace": "docs", "agent": "default"}
    assert found == pytest.approx(
        {
            labels_of({**run, **({pair[0]: pair[1]} if pair else {})}): value
            for pair, value in expected.items()
        }
    )


def test_a_histogram_has_the_buckets_that_are_exported() -> None:
    samples = count_samples(TABLES, {"triage_recovery_seconds": ("1", "5", "+Inf")})
    labels = {"namespace": "docs", "agent": "default", "cause": "oom"}
    assert samples["triage_recovery_seconds_bucket"] == {
        labels_of({**labels, "le": bound}): value for bound, value in (("1", 0), ("5", 1), ("+Inf", 1))
    }


def test_an_agent_is_shown_as_it_is_and_with_the_tree_of_its_newest_run() -> None:
    labels = {"namespace": "docs", "agent": "default", "image": "agent:1", "fingerprint": "0a1b"}
    assert count_samples(TABLES, {})["triage_agent_info"] == {labels_of(labels): 1}
