"""The references of the operator's settings and metrics, from what declares them."""

from collections.abc import Sequence
from typing import Final

from triage_operator.metrics.declared import LABELS, OF_RUNS, OF_THE_OPERATOR, Declared, Kind
from triage_operator.options import GROUPS, options_of

_SETTINGS: Final = """<!-- Made by hack/generate.py from operator/triage_operator/settings.py; edit that. -->
# Settings of the operator

Each is a flag of `triage-operator run` and an environment variable; the flag wins. `migrate` and `check` take those
that they need. Besides these there are `--namespace` (`TRIAGE_OPERATOR_NAMESPACE`; to watch; may be repeated, in the
variable separated by blanks; default all), `--cluster-id` (`TRIAGE_OPERATOR_CLUSTER_ID`; tells clusters on one database
apart; default the UID of namespace `kube-system`), `--log-format` (`TRIAGE_OPERATOR_LOG_FORMAT`; `json` or `text`) and
`--log-level` (`TRIAGE_OPERATOR_LOG_LEVEL`).
"""
_METRICS: Final = """<!-- Made by hack/generate.py from operator/triage_operator/metrics/declared.py; edit that. -->
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
            *_table(OF_RUNS),
            "## The operator",
            "",
            *_table(OF_THE_OPERATOR),
            "And what prometheus-client says of any process: `process_*`, `python_info`.",
            "",
            "## Labels",
            "",
            "No label names a run, a pod, a node or a person: log lines do. So the number of series grows, not with",
            "that of runs, but with the product of what the labels of a metric can be:",
            "",
            "| Label | What bounds it |",
            "|---|---|",
            *(f"| `{label}` | {bound} |" for label, bound in LABELS.items()),
            "",
        ]
    )


def _table(metrics: Sequence[Declared]) -> list[str]:
    rows = ["| Metric | Type | Labels | Meaning |", "|---|---|---|---|"]
    for metric in metrics:
        suffix = "_total" if metric.kind is Kind.COUNTER else ""
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        rows.append(f"| `{metric.full_name}{suffix}` | {metric.kind} | {labels} | {metric.help} |")
    bounds = [
        f"Buckets of `{metric.full_name}`: {', '.join(f'{bound:g}' for bound in metric.bounds)}.\n"
        for metric in metrics
        if metric.bounds
    ]
    return [*rows, "", *bounds]
