"""All metrics of the operator: names, kinds, labels, and what each means.

Names are exported with ``triage_`` before them, and a counter's with ``_total`` behind it, as
https://prometheus.io/docs/practices/naming asks. No label names a run, a pod, a node or a person: what bounds each
label is in ``LABELS``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """Type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A metric. ``bounds`` are the upper bounds of a histogram's buckets, in its unit."""

    name: str
    help: str
    kind: Kind
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        """The name of its family: a counter's samples have ``_total`` behind it."""
        return f"triage_{self.name}"


LABELS: Final = {
    "namespace": "Namespaces that have runs.",
    "agent": "Names of TriageAgents that have runs.",
    "phase": "The 8 phases of a TriageRun.",
    "outcome": "The 10 outcomes of an attempt.",
    "cause": "The causes of the API reference, and `unknown`.",
    "reason": "The reasons of the page about conditions.",
    "state": "The 3 states in which a run ends; of a connection, busy or idle.",
    "tool": "Names of tools that an agent has declared or called; a name that it made up counts as `other`.",
    "where": "`journal` or `tracker`.",
    "how": "`in_place` or `next_attempt`.",
    "action": "`Done`, `RunAgain` or `Fail`; of a pass, what the operator did.",
    "kind": "`prompt` or `output`; of seconds, `model` or `tool`.",
    "stage": "`scheduled`, `started`, `claimed` or `first_write`.",
    "image": "Images of TriageAgents.",
    "fingerprint": "One a TriageAgent: that of the tree which its newest run began with.",
    "resource": "Kinds of objects that the operator watches or asks for.",
    "verb": "Methods of HTTP.",
    "code": "Status codes of HTTP, and `none` where nothing answered.",
    "operation": "`read`, `write` or `look`.",
    "version": "One.",
}
"""What bounds each label."""

_RUN: Final = ("namespace", "agent")

RECOVERY_BOUNDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""From a hand-off to a long backoff."""

START_BOUNDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
ATTEMPTS_BOUNDS: Final = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0)
PASS_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
STATEMENT_BOUNDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 20.0)


def _counter(name: str, help_: str, *labels: str) -> Declared:
    return Declared(name=name, help=help_, kind=Kind.COUNTER, labels=(*_RUN, *labels))


def _gauge(name: str, help_: str, *labels: str) -> Declared:
    return Declared(name=name, help=help_, kind=Kind.GAUGE, labels=(*_RUN, *labels))


COUNTERS: Final = (
    _counter("runs_created", "Runs that the operator took up."),
    _counter("runs_ended", "Runs that ended, by state and reason.", "state", "reason"),
    _counter(
        "attempts",
        "Attempts that ended, by outcome and cause; the cause is empty where nothing was lost.",
        "outcome",
        "cause",
    ),
    _counter("losses", "Attempts that were lost, by cause.", "cause"),
    _counter("resumes", "Pods made to go on with a run, by the cause of the attempt before.", "cause"),
    _counter(
        "resumes_refused", "Runs with a lost attempt that were ended instead of resumed, by reason.", "reason"
    ),
    _counter(
        "memory_raises", "Memory limits that were raised, for a running attempt or the next one.", "how"
    ),
    _counter(
        "duplicates_suppressed",
        "Repeated tool calls without a second effect, by tool and by what suppressed it.",
        "tool",
        "where",
    ),
    _counter("fence_refusals", "Attempts that were refused a write, since they were not the current one."),
    _counter("repairs", "Repairs of sessions that no attempt could have gone on with."),
    _counter(
        "calls_in_doubt_found",
        "Tool calls that had begun when their attempt ended, and had not, by tool.",
        "tool",
    ),
    _counter("decisions", "Decisions of people about calls in doubt that were carried out.", "action"),
    _counter("replies_replayed", "Model replies that resumed attempts did not ask for again."),
    _counter("tokens_saved", "Tokens of those replies, which were not paid twice.", "kind"),
    _counter("seconds_saved", "Seconds that those replies, and the calls done before, had taken.", "kind"),
    _counter("model_waits", "Waits that a model's endpoint asked for, or its absence."),
    _counter("model_wait_seconds", "Seconds of those waits."),
)
"""Kept in the database under the same names."""

HISTOGRAMS: Final = (
    Declared(
        name="recovery_seconds",
        help="Seconds from the detection of a loss to the next attempt's first durable write, by cause.",
        kind=Kind.HISTOGRAM,
        labels=(*_RUN, "cause"),
        bounds=RECOVERY_BOUNDS,
    ),
    Declared(
        name="attempts_per_run",
        help="Attempts that runs had when they ended, by state.",
        kind=Kind.HISTOGRAM,
        labels=(*_RUN, "state"),
        bounds=ATTEMPTS_BOUNDS,
    ),
    Declared(
        name="start_seconds",
        help="Seconds from the record of an attempt until its pod had a node, its container ran, it claimed its"
        " run, and it wrote first, by stage.",
        kind=Kind.HISTOGRAM,
        labels=(*_RUN, "stage"),
        bounds=START_BOUNDS,
    ),
)
"""Kept in the database: ``NAME_sum``, and ``NAME_bucket`` with the label ``le``."""

STANDING: Final = (
    _gauge("runs", "TriageRuns that exist, by phase.", "phase"),
    _gauge("calls_in_doubt", "Tool calls that are in doubt now."),
    _gauge("oldest_in_doubt_seconds", "Age of the oldest call in doubt; 0: there is none."),
    _gauge("runs_waiting", "Runs that wait for a person or an answer."),
    _gauge("oldest_waiting_seconds", "How long the first of them has waited; 0: none does."),
    _gauge("runs_unattended", "Runs that should be at work and have no attempt that lives."),
    _gauge("oldest_unattended_seconds", "How long the first of them has had none; 0: there is none."),
    _gauge("runs_queued", "Runs that wait for a place of their agent."),
    _gauge("oldest_queued_seconds", "How long the first of them has waited; 0: none does."),
    _gauge("starts_blocked", "Runs whose pod cannot be made or cannot start, by reason.", "reason"),
    _gauge(
        "duplicate_effects",
        "Issues that a run filed again within a day, word for word, of those in the Postgres tracker.",
    ),
    _gauge(
        "agent_info",
        "1 for each TriageAgent with runs: what its next attempt starts with.",
        "image",
        "fingerprint",
    ),
)
"""How the runs stand, said by the leader alone."""

RECONCILES: Final = Declared(
    name="reconcile_seconds",
    help="Seconds that a pass over one run took, by what was done.",
    kind=Kind.HISTOGRAM,
    labels=("action",),
    bounds=PASS_BOUNDS,
)
STATEMENTS: Final = Declared(
    name="database_seconds",
    help="Seconds that the database took, by what it was asked for.",
    kind=Kind.HISTOGRAM,
    labels=("operation",),
    bounds=STATEMENT_BOUNDS,
)
CONNECTIONS: Final = Declared(
    name="database_connections", help="Connections to the database.", kind=Kind.GAUGE, labels=("state",)
)
REQUESTS: Final = Declared(
    name="api_requests",
    help="Requests to the API server.",
    kind=Kind.COUNTER,
    labels=("verb", "resource", "code"),
)
REQUEST_SECONDS: Final = Declared(
    name="api_request_seconds",
    help="Seconds that the API server took to answer, without watches.",
    kind=Kind.HISTOGRAM,
    labels=("verb",),
    bounds=PASS_BOUNDS,
)
WATCH_AGE: Final = Declared(
    name="watch_age_seconds",
    help="Seconds since the API server was last heard on a watch, by resource.",
    kind=Kind.GAUGE,
    labels=("resource",),
)
BUILD: Final = Declared(name="build_info", help="1: what runs.", kind=Kind.GAUGE, labels=("version",))

GAUGES: Final = (
    Declared(name="leader", help="1 for the operator that leads, 0 for one that stands by.", kind=Kind.GAUGE),
    Declared(name="queue_depth", help="Runs that wait for a worker.", kind=Kind.GAUGE),
    Declared(
        name="sweep_age_seconds",
        help="Seconds since the last complete comparison of what should be with what is.",
        kind=Kind.GAUGE,
    ),
    Declared(
        name="look_age_seconds",
        help="Seconds since the database last told the attempts' signs of life.",
        kind=Kind.GAUGE,
    ),
    Declared(name="database_up", help="1: the database answers the leader; 0: it does not.", kind=Kind.GAUGE),
)
"""What each operator says of itself at a scrape."""

OF_RUNS: Final = (*COUNTERS, *HISTOGRAMS, *STANDING)
OF_THE_OPERATOR: Final = (
    *GAUGES,
    RECONCILES,
    STATEMENTS,
    CONNECTIONS,
    REQUESTS,
    REQUEST_SECONDS,
    WATCH_AGE,
    BUILD,
)
DECLARED: Final = (*OF_RUNS, *OF_THE_OPERATOR)
