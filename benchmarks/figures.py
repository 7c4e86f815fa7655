"""Figures of repeated measurements, and how they are printed."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Repeated measurements of one thing, in seconds."""

    name: str
    seconds: Sequence[float]

    @property
    def p50(self) -> float:
        """The median in seconds."""
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        """The 95th percentile in seconds, by the nearest rank."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]


def print_table(title: str, measured: Sequence[Measured], *, unit: str = "ms") -> None:
    """Print a row for each measurement."""
    factor = {"ms": 1000.0, "s": 1.0}[unit]
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in ("n", f"p50 {unit}", f"p95 {unit}"):
        table.add_column(heading, justify="right")
    for row in measured:
        table.add_row(row.name, str(len(row.seconds)), f"{row.p50 * factor:.2f}", f"{row.p95 * factor:.2f}")
    Console(width=120).print(table)
