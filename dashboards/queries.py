"""PromQL for metrics that the leader exports from the database.

Such a counter never resets, and two operators may export it in the same scrape while the leader changes. So it is
read as the greatest of all, and what came in a range is what it is now without what it was then: ``rate`` and
``increase`` would miss the first count of a series, and take a change of leader for a series that begins. While nobody
leads, nothing is exported: the last value of ``GAP`` stands for it.
"""

from collections.abc import Sequence
from typing import Final

from triage_operator.metrics.declared import COUNTERS, HISTOGRAMS

SELECTED: Final = 'namespace=~"$namespace",agent=~"$agent"'
"""The runs that a dashboard's variables select."""


GAP: Final = "5m"
"""The longest time without a leader after which counters go on where they were."""

_LABELS: Final = {
    **{f"{each.full_name}_total": each.labels for each in COUNTERS},
    **{f"{each.full_name}_bucket": (*each.labels, "le") for each in HISTOGRAMS},
}
"""Labels of each exported counter of runs: those that scrapes add tell the operators apart, which say the same."""


def total(metric: str, *labels: str, where: str = SELECTED, offset: str = "") -> str:
    """Give what was counted so far, by ``labels``; ``metric`` is the exported name."""
    moved = f" offset {offset}" if offset else ""
    return _by(
        "sum", labels, _by("max", _LABELS[metric], f"last_over_time({metric}{{{where}}}[{GAP}]{moved})")
    )


def counted(metric: str, *labels: str, within: str, where: str = SELECTED) -> str:
    """Give how much was counted ``within`` a range, by ``labels``."""
    now = total(metric, *labels, where=where)
    return f"{now} - ({total(metric, *labels, where=where, offset=within)} or 0 * {now})"


def quantile(share: float, metric: str, *labels: str, within: str, where: str = SELECTED) -> str:
    """Give a quantile of a histogram over what was counted ``within`` a range, by ``labels``."""
    return f"histogram_quantile({share:g}, {counted(f'{metric}_bucket', 'le', *labels, within=within, where=where)})"


def standing(metric: str, *labels: str, by: str = "sum", where: str = SELECTED) -> str:
    """Give a gauge of the leader's, summed (or ``max``) by ``labels``."""
    return _by(by, labels, f"{metric}{{{where}}}")


def _by(operation: str, labels: Sequence[str], vector: str) -> str:
    return f"{operation} by ({', '.join(labels)}) ({vector})" if labels else f"{operation}({vector})"
