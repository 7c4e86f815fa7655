"""The references of the operator's settings and metrics, from what declares them."""

from collections.abc import Iterable
from typing import Final

from triage_operator.metrics import (
    COUNTERS,
    GAUGES,
    RECONCILE_BOUNDS,
    RECONCILES,
    RECOVERY,
    RUNS,
    WATCH_AGE,
    Declared,
)
from triage_operator.options import GROUPS, options_of
from triage_operator.store import RECOVERY_BOUNDS

_SETTINGS: Final = """<!-- Made by hack/generate.py from operator/triage_operator/settings.py; edit that. -->
# Settings of the operator

Each is a flag of `triage-operator run` and an environment variable; the flag wins. `migrate` and `check` take those
that they need. Besides these there are `--namespace` (`TRIAGE_OPERATOR_NAMESPACE`; to watch; may be repeated, in the
variable separated by blanks; default all), `--cluster-id` (`TRIAGE_OPERATOR_CLUSTER_ID`; tells clusters on one database
apart; default the UID of namespace `kube-system`), `--log-format` (`TRIAGE_OPERATOR_LOG_FORMAT`; `json` or `text`) and
`--log-level` (`TRIAGE_OPERATOR_LOG_LEVEL`).
"""
_METRICS: Final = """<!-- Made by hack/generate.py from operator/triage_operator/metrics.py; edit that. -->
# Metrics of the operator

Served on `/metrics`. What is said of runs is kept in the database and exported by the leader only: it survives
restarts, and a sum over all operators is right. What an operator says of itself, each exports.
"""


def render_settings_reference() -> str:
    """Return the page about settings, in Markdown."""
    lines = [_SETTINGS]
    for group, (_, settings) in GROUPS.items():
        lines += [
            f"## {group.capitalize()}",
            "",
            (settings.__doc__ or "").split("\n\n")[0].replace("``", "`"),
            "",
        ]
        lines += ["| Flag | Variable | Default | Meaning |", "|---|---|---|---|"]
        for option in options_of(group):
            default = option.default_text or ("" if option.default is None else f"`{option.default}`")
            shown = "**required**" if option.required else default
            lines.append(f"| `{option.flag}` | `{option.variable}` | {shown} | {option.help} |")
        lines.append("")
    return "\n".join(lines)


def render_metrics_reference() -> str:
    """Return the page about metrics, in Markdown."""
    return "\n".join(
        [
            _METRICS,
            "## Runs",
            "",
            *_table(
                [
                    (RUNS, "gauge", ""),
                    *((counter, "counter", "_total") for counter in COUNTERS),
                    (RECOVERY, "histogram", ""),
                ]
            ),
            "",
            f"Buckets of `triage_{RECOVERY.name}`, in seconds: {_bounds(RECOVERY_BOUNDS)}.",
            "",
            "## The operator",
            "",
            *_table(
                [
                    *((gauge, "gauge", "") for gauge in (*GAUGES, WATCH_AGE)),
                    (RECONCILES, "histogram", ""),
                ]
            ),
            "",
            f"Buckets of `triage_{RECONCILES.name}`, in seconds: {_bounds(RECONCILE_BOUNDS)}.",
            "",
        ]
    )


def _table(metrics: Iterable[tuple[Declared, str, str]]) -> list[str]:
    rows = ["| Metric | Type | Labels | Meaning |", "|---|---|---|---|"]
    for metric, kind, suffix in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `triage_{metric.name}{suffix}` | {kind} | {labels} | {metric.help} |")
    return rows


def _bounds(bounds: tuple[float, ...]) -> str:
    return ", ".join(f"{bound:g}" for bound in bounds)
