"""The metrics as they would be if all of them were counted from the tables, in this module's own way."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from observe.tables import Row, Tables
from triage_contract.states import Outcome, Phase

Labels = frozenset[tuple[str, str]]
Samples = Mapping[Labels, float]
Told = Iterator[tuple[Mapping[str, object], float]]
"""Labels beside those of the run, and what is to be added or observed."""

_RESUMABLE: Final = (Outcome.LOST, Outcome.HANDED_OFF, Outcome.FAILED, Outcome.MODEL_UNAVAILABLE)
_STAGES: Final = ("scheduled", "started", "claimed", "first_write")


def count_samples(tables: Tables, bounds: Mapping[str, Sequence[str]]) -> dict[str, Samples]:
    """Give the samples of each metric that the tables tell of, by its name.

    Args:
        tables: Of an incident that is over.
        bounds: Of each histogram the values of ``le`` that it is exported with.
    """
    samples: dict[str, Samples] = {}
    for name, count in _COUNTERS.items():
        samples[f"triage_{name}_total"] = _summed(count(tables))
    for name, gauge in _GAUGES.items():
        samples[f"triage_{name}"] = _summed(gauge(tables))
    for name, observe in _HISTOGRAMS.items():
        full, observed = f"triage_{name}", list(observe(tables))
        samples[f"{full}_bucket"] = _summed(
            ({**labels, "le": bound}, float(value <= float(bound)))
            for labels, value in observed
            for bound in bounds.get(full, ())
        )
        samples[f"{full}_sum"] = _summed(observed)
        samples[f"{full}_count"] = _summed((labels, 1) for labels, _ in observed)
    return samples


def _attempts(tables: Tables) -> Told:
    for attempt in tables.attempts:
        if attempt["cause"] is not None or attempt["outcome"] not in (None, Outcome.LOST):
            labels = {"outcome": attempt["outcome"], "cause": attempt["cause"] or ""}
            yield {**_whose(tables.run_of(attempt)), **labels}, 1


def _losses(tables: Tables) -> Told:
    for attempt in tables.attempts:
        if attempt["cause"] is not None:
            yield {**_whose(tables.run_of(attempt)), "cause": attempt["cause"]}, 1


def _resumes(tables: Tables) -> Told:
    for run, before, after in tables.followed():
        cause = before["cause"] or (None if before["outcome"] == Outcome.LOST else before["outcome"])
        if after["pod_uid"] is not None and cause is not None:
            yield {**_whose(run), "cause": cause}, 1


def _resumes_refused(tables: Tables) -> Told:
    for run in tables.runs:
        attempts = tables.of(run)
        lost = bool(attempts) and attempts[-1]["outcome"] in _RESUMABLE
        if run["state"] in ("succeeded", "failed") and lost:
            yield {**_whose(run), "reason": _reason(tables, run)}, 1


def _runs_created(tables: Tables) -> Told:
    for run in tables.runs:
        yield _whose(run), 1


def _runs_ended(tables: Tables) -> Told:
    for run in tables.runs:
        if run["ended_at"] is not None:
            yield {**_whose(run), "state": run["state"], "reason": _reason(tables, run)}, 1


def _duplicates_suppressed(tables: Tables) -> Told:
    for call in tables.tool_calls:
        whose = {**_whose(tables.run_of(call)), "tool": call["tool"]}
        yield {**whose, "where": "journal"}, call["suppressed_by_journal"]
        yield {**whose, "where": "tracker"}, call["suppressed_by_tracker"]


def _fence_refusals(tables: Tables) -> Told:
    for attempt in tables.attempts:
        if attempt["fenced_at"] is not None:
            yield _whose(tables.run_of(attempt)), 1


def _repairs(tables: Tables) -> Told:
    for repair in tables.repairs:
        yield _whose(tables.run_of(repair)), 1


def _decisions(tables: Tables) -> Told:
    for obj in tables.objects:
        for decision in obj["spec"].get("decisions") or ():
            yield {**_whose_object(obj), "action": decision["action"]}, 1


def _replies_replayed(tables: Tables) -> Told:
    for run, replies, _ in _saved(tables):
        yield _whose(run), len(replies)


def _tokens_saved(tables: Tables) -> Told:
    for run, replies, _ in _saved(tables):
        for kind in ("prompt", "output"):
            tokens = sum(reply[f"{kind}_tokens"] or 0 for reply in replies)
            yield {**_whose(run), "kind": kind}, tokens


def _seconds_saved(tables: Tables) -> Told:
    for run, replies, calls in _saved(tables):
        yield {**_whose(run), "kind": "model"}, sum(reply["seconds"] or 0.0 for reply in replies)
        yield {**_whose(run), "kind": "tool"}, sum(_between(call, "begun_at", "ended_at") for call in calls)


def _saved(tables: Tables) -> Iterator[tuple[Row, list[Row], list[Row]]]:
    """Of each attempt that went on after a loss: the replies and finished calls that were there before it."""
    for run, before, after in tables.followed():
        if before["lost_at"] is None or after["first_write_at"] is None:
            continue

        def is_earlier(row: Row, run: Row = run, after: Row = after) -> bool:
            return bool(row["invocation_id"] == run["invocation_id"] and row["epoch"] < after["epoch"])

        yield (
            run,
            [reply for reply in tables.model_replies if is_earlier(reply)],
            [call for call in tables.tool_calls if is_earlier(call) and call["state"] in ("done", "raised")],
        )


def _model_waits(tables: Tables) -> Told:
    for run, before, after in tables.followed():
        if before["outcome"] == Outcome.MODEL_UNAVAILABLE and after["pod_uid"] is not None:
            yield _whose(run), 1


def _recovery_seconds(tables: Tables) -> Told:
    for run, before, after in tables.followed():
        if before["lost_at"] is not None and after["first_write_at"] is not None:
            seconds = (after["first_write_at"] - before["lost_at"]).total_seconds()
            yield {**_whose(run), "cause": before["cause"] or "unknown"}, max(seconds, 0.0)


def _attempts_per_run(tables: Tables) -> Told:
    for run in tables.runs:
        if run["ended_at"] is not None:
            yield {**_whose(run), "state": run["state"]}, len(tables.of(run))


def _start_seconds(tables: Tables) -> Told:
    for attempt in tables.attempts:
        for stage in _STAGES:
            if attempt[f"{stage}_at"] is not None:
                # What a pod's status says is in whole seconds, and may be before the attempt that it is of.
                seconds = max(_between(attempt, "created_at", f"{stage}_at"), 0.0)
                yield {**_whose(tables.run_of(attempt)), "stage": stage}, seconds


def _runs(tables: Tables) -> Told:
    for obj in tables.objects:
        yield {**_whose_object(obj), "phase": obj["status"]["phase"]}, 1


def _calls_in_doubt(tables: Tables) -> Told:
    for obj in tables.objects:
        yield _whose_object(obj), len(obj["status"].get("waitingFor") or ())


def _runs_waiting(tables: Tables) -> Told:
    for obj in tables.objects:
        yield _whose_object(obj), float(obj["status"]["phase"] == Phase.WAITING)


def _agent_info(tables: Tables) -> Told:
    for agent in tables.agents:
        whose = {"namespace": agent["metadata"]["namespace"], "agent": agent["metadata"]["name"]}
        runs = [run for run in tables.runs if run["root"] is not None and _whose(run) == whose]
        if runs:
            newest = max(runs, key=lambda run: run["created_at"])
            image, fingerprint = agent["spec"]["image"], newest["root"]["fingerprint"]
            yield {**whose, "image": image, "fingerprint": fingerprint}, 1


def _none(tables: Tables) -> Told:
    """Whatever there is of it while an incident goes on, there is nothing of it once all runs are over."""
    if any(not Phase(obj["status"]["phase"]).terminal for obj in tables.objects):
        raise AssertionError("not all runs are over")
    yield from ()


_COUNTERS: Final[Mapping[str, Callable[[Tables], Told]]] = {
    "attempts": _attempts,
    "losses": _losses,
    "resumes": _resumes,
    "resumes_refused": _resumes_refused,
    "runs_created": _runs_created,
    "runs_ended": _runs_ended,
    "duplicates_suppressed": _duplicates_suppressed,
    "fence_refusals": _fence_refusals,
    "repairs": _repairs,
    "decisions": _decisions,
    "replies_replayed": _replies_replayed,
    "tokens_saved": _tokens_saved,
    "seconds_saved": _seconds_saved,
    "model_waits": _model_waits,
}
_HISTOGRAMS: Final[Mapping[str, Callable[[Tables], Told]]] = {
    "recovery_seconds": _recovery_seconds,
    "attempts_per_run": _attempts_per_run,
    "start_seconds": _start_seconds,
}
_GAUGES: Final[Mapping[str, Callable[[Tables], Told]]] = {
    "runs": _runs,
    "calls_in_doubt": _calls_in_doubt,
    "runs_waiting": _runs_waiting,
    "agent_info": _agent_info,
    "oldest_in_doubt_seconds": _none,
    "oldest_waiting_seconds": _none,
    "runs_unattended": _none,
    "oldest_unattended_seconds": _none,
    "runs_queued": _none,
    "oldest_queued_seconds": _none,
    "duplicate_effects": _none,
    "starts_blocked": _none,
}


def labels_of(labels: Mapping[str, object]) -> Labels:
    """Give labels in a form that can be compared; an empty one is none."""
    return frozenset((name, str(value)) for name, value in labels.items() if str(value))


def _summed(told: Iterable[tuple[Mapping[str, object], float]]) -> Samples:
    sums: dict[Labels, float] = defaultdict(float)
    for labels, value in told:
        sums[labels_of(labels)] += value
    return dict(sums)


def _whose(run: Row) -> dict[str, object]:
    return {"namespace": run["namespace"], "agent": run["agent"]}


def _whose_object(obj: Mapping[str, Any]) -> dict[str, object]:
    return {"namespace": obj["metadata"]["namespace"], "agent": obj["spec"]["agentRef"]["name"]}


def _reason(tables: Tables, run: Row) -> str:
    """Why a run ended, as its status says."""
    obj = next(obj for obj in tables.objects if obj["metadata"]["uid"] == str(run["id"]))
    reasons = {each["type"]: each["reason"] for each in obj["status"]["conditions"]}
    return str(reasons["Finished"])


def _between(row: Row, start: str, end: str) -> float:
    return 0.0 if row[end] is None else float((row[end] - row[start]).total_seconds())
