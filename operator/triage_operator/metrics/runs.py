"""How the runs stand, as samples of the gauges that the leader exports."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from triage_contract.states import Cause, DecisionAction, Phase
from triage_operator.reasons import Reason
from triage_operator.standing import Standing
from triage_operator.status import HELD_UP
from triage_operator.stored import RunKey

Sample = tuple[str, Mapping[str, object], float]
"""A metric's name, labels and value."""

BLOCKED: Final = frozenset(
    {
        Reason.START_BLOCKED,
        Reason.UNSCHEDULABLE,
        Reason.POD_REFUSED,
        Reason.UNKNOWN_AGENT,
        Reason.BAD_AGENT,
        Reason.BAD_CONFIGURATION,
    }
)
"""Reasons for which a pod cannot be made or cannot start."""

_AT_WORK: Final = frozenset({Phase.PENDING, Phase.RUNNING, Phase.RECOVERING})
_WAITS: Final = frozenset({Reason.QUEUED, Reason.BACKING_OFF, Reason.MODEL_UNAVAILABLE}) | HELD_UP
"""Reasons for which a run rightly has no attempt that lives."""


_SAVED: Final = {"tokens_saved": ("prompt", "output"), "seconds_saved": ("model", "tool")}
_CAUSES: Final = tuple({"cause": cause.value} for cause in Cause)
_ZEROS: Final[tuple[tuple[str, Mapping[str, str]], ...]] = (
    *((name, labels) for name in ("losses", "resumes") for labels in _CAUSES),
    *((name, {"kind": kind}) for name, kinds in _SAVED.items() for kind in kinds),
    *(("decisions", {"action": action.value}) for action in (DecisionAction.DONE, DecisionAction.RUN_AGAIN)),
    *(("memory_raises", {"how": how}) for how in ("in_place", "next_attempt")),
    *(
        (name, {})
        for name in (
            "runs_created",
            "fence_refusals",
            "repairs",
            "replies_replayed",
            "model_waits",
            "model_wait_seconds",
        )
    ),
)


def zero_samples(runs: Iterable[Standing]) -> Iterator[Sample]:
    """Give a zero for each counter of each agent that has runs, by the labels whose values are known beforehand.

    Prometheus sees no increase in a series that begins with 1.
    """
    for namespace, agent in {(run.namespace, run.agent) for run in runs}:
        for name, more in _ZEROS:
            yield name, {"namespace": namespace, "agent": agent, **more}, 0.0


def standing_samples(runs: Iterable[Standing], now: datetime) -> Iterator[Sample]:
    """Give the samples of all runs that exist, zeros included; ``now`` is the time of the scrape."""
    agents: dict[tuple[str, str], list[Standing]] = defaultdict(list)
    for run in runs:
        agents[run.namespace, run.agent].append(run)
    for (namespace, agent), theirs in agents.items():
        labels = {"namespace": namespace, "agent": agent}
        phases = Counter(run.phase for run in theirs)
        for phase in Phase:
            yield "runs", {**labels, "phase": phase.value}, phases[phase]
        open_ = [run for run in theirs if not run.is_over]
        doubted = [since for run in open_ for since in run.doubted_since]
        waiting = [run.since for run in open_ if run.phase == Phase.WAITING]
        queued = [run.since for run in open_ if run.reason == Reason.QUEUED]
        yield from _aged(labels, "calls_in_doubt", "oldest_in_doubt_seconds", doubted, now)
        yield from _aged(labels, "runs_waiting", "oldest_waiting_seconds", waiting, now)
        yield from _aged(labels, "runs_queued", "oldest_queued_seconds", queued, now)
        for reason, count in Counter(run.reason for run in open_ if run.reason in BLOCKED).items():
            yield "starts_blocked", {**labels, "reason": reason}, count


def unattended_samples(
    standings: Mapping[RunKey, Standing], unattended: Iterable[tuple[RunKey, float]]
) -> Iterator[Sample]:
    """Give the samples of runs that should be at work and have no attempt that lives, zeros included.

    Args:
        standings: how all runs stand.
        unattended: runs without an attempt that lives, and for how many seconds, whether or not they should have one.
    """
    ages: dict[tuple[str, str], list[float]] = {(one.namespace, one.agent): [] for one in standings.values()}
    for key, seconds in unattended:
        run = standings.get(key)
        if run is not None and run.phase in _AT_WORK and run.reason not in _WAITS:
            ages[run.namespace, run.agent].append(seconds)
    for (namespace, agent), theirs in ages.items():
        labels = {"namespace": namespace, "agent": agent}
        yield "runs_unattended", labels, len(theirs)
        yield "oldest_unattended_seconds", labels, max(theirs, default=0.0)


def _aged(
    labels: Mapping[str, str], count: str, age: str, since: Sequence[datetime | None], now: datetime
) -> Iterator[Sample]:
    yield count, labels, len(since)
    ages = [(now - each).total_seconds() for each in since if each is not None]
    yield age, labels, max(ages, default=0.0)
