"""The result of an observation, for people."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from observe.comparing import Checked, Finding

_STYLES = {
    Finding.EQUAL: "green",
    Finding.ANSWERED: "cyan",
    Finding.EMPTY: "dim",
    Finding.WRONG: "bold red",
    Finding.SILENT: "bold red",
    Finding.REFUSED: "bold red",
}


def print_report(console: Console, checked: Sequence[Checked]) -> None:
    """Print a line for each query, and for each one that is off what it should be."""
    table = Table(title="What Prometheus says, and what the tables do", title_justify="left")
    table.add_column("Panel or alert", max_width=48)
    table.add_column("Finding", no_wrap=True)
    table.add_column("Answer", overflow="fold")
    for one in checked:
        table.add_row(one.place, f"[{_STYLES[one.finding]}]{one.finding}[/]", one.answer or one.note)
    console.print()
    console.print(table)
    console.print(", ".join(_counts(checked)))
    for one in checked:
        if not one.finding.is_good:
            console.print(f"{one.place}: {one.finding}", style="bold red", markup=False, soft_wrap=True)
            console.print(f"  {one.note}\n  {one.query}", style="red", markup=False, soft_wrap=True)


def _counts(checked: Iterable[Checked]) -> Iterable[str]:
    findings = [one.finding for one in checked]
    for finding in Finding:
        if count := findings.count(finding):
            yield f"{count} {finding}"
