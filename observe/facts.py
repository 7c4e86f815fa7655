"""What is known of the incident by its script alone, without any table: how often what took place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from observe.comparing import Checked, Finding
from observe.operators import Window
from observe.prometheus import Prometheus


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A question with one number for an answer; ``least`` to ``most`` is what the number may be."""

    what: str
    query: str
    """``RANGE`` in it stands for the incident's length."""
    least: float
    most: float


def _number(what: str, query: str, value: float) -> Fact:
    return Fact(what=what, query=query, least=value, most=value)


def _total(metric: str, labels: str = "") -> str:
    """Ask for a counter of runs: each operator that led has all of it."""
    return f"sum(max without (instance, pod, job) (triage_{metric}_total{labels}))"


# A call that nobody declared was decided about after a person was alerted.
_LEAST_PATIENCE_SECONDS: Final = 3.0
_MOST_PATIENCE_SECONDS: Final = 30.0

FACTS: Final = (
    _number("attempts killed by SIGKILL", _total("losses", '{cause="sigkill"}'), 5),
    # One with room for more memory, and four of a run at its cap before it is given up.
    _number("OOM kills", _total("losses", '{cause="oom"}'), 5),
    _number("runs drained off a node", _total("losses", '{cause="drain"}'), 1),
    _number("runs moved by a deploy", _total("losses", '{cause="rollout"}'), 1),
    _number(
        "pods deleted behind a dead operator", _total("losses", '{cause=~"sigterm|vanished|deleted"}'), 1
    ),
    _number("frozen attempts", _total("losses", '{cause=~"unresponsive|node_unreachable"}'), 1),
    _number("frozen attempts that woke up and were refused", _total("fence_refusals"), 1),
    _number("waits that the model asked for", _total("model_waits"), 1),
    Fact(what="seconds of these waits", query=_total("model_wait_seconds"), least=2, most=30),
    _number("runs", _total("runs_created"), 12),
    _number("runs that succeeded", _total("runs_ended", '{state="succeeded"}'), 11),
    _number("runs given up", _total("resumes_refused"), 1),
    # Three runs killed after their write, and the page that the fourth had read.
    # For the next attempt; or in place first, where the operator saw in time that memory grew short.
    Fact(what="memory limits raised", query=_total("memory_raises"), least=1, most=2),
    _number("duplicates suppressed", _total("duplicates_suppressed", '{where="journal"}'), 4),
    # The undeclared one, and each that was begun anew under its key.
    Fact(what="calls that came to be in doubt", query=_total("calls_in_doubt_found"), least=1, most=20),
    _number("decisions of a person", _total("decisions"), 1),
    _number("calls in doubt for a person at most", "max_over_time(sum(triage_calls_in_doubt)[RANGE:1s])", 1),
    _number("calls in doubt at the end", "sum(triage_calls_in_doubt)", 0),
    Fact(
        what="seconds that the oldest of them was in doubt",
        query="max(max_over_time(triage_oldest_in_doubt_seconds[RANGE]))",
        least=_LEAST_PATIENCE_SECONDS,
        most=_MOST_PATIENCE_SECONDS,
    ),
    _number("operators that lead at the end", "sum(triage_leader)", 1),
)


async def check_facts(prometheus: Prometheus, window: Window) -> Sequence[Checked]:
    """Ask for each fact at the end of the incident."""
    return [await _check(prometheus, window, fact) for fact in FACTS]


async def _check(prometheus: Prometheus, window: Window, fact: Fact) -> Checked:
    query = fact.query.replace("RANGE", f"{int(window.seconds)}s")
    answer = await prometheus.query(query, window.end)
    value = sum(series.value for series in answer)
    wanted = f"{fact.least:g}" if fact.least == fact.most else f"{fact.least:g} to {fact.most:g}"
    is_so = bool(answer) and fact.least <= value <= fact.most
    return Checked(
        place=f"incident: {fact.what}",
        query=query,
        finding=Finding.EQUAL if is_so else Finding.WRONG if answer else Finding.SILENT,
        answer=f"{value:.4g}" if answer else "",
        note=f"it was {wanted}",
    )
