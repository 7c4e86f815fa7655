"""The table of what became of the trials."""

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from chaos.trials import Trial


def print_table(trials: Sequence[Trial], console: Console) -> None:
    """Print a line for each shape, and one for all."""
    table = Table(
        title="One effect per intended call, or a named doubt; one answer; no write by a fenced process"
    )
    table.add_column("Shape")
    for column in ("Runs", "Attempts", "Decided by a person", "Wrong"):
        table.add_column(column, justify="right")
    for shape in dict.fromkeys(trial.shape for trial in trials):
        _add(table, shape, [trial for trial in trials if trial.shape == shape])
    table.add_section()
    _add(table, "all", trials)
    console.print(table)
    harms = Counter(str(fault.harm) for trial in trials for fault in trial.faults)
    twins = sum(trial.twins for trial in trials)
    skewed = sum(bool(trial.skew_seconds) for trial in trials)
    told = [f"{harm} {count}" for harm, count in harms.most_common()]
    console.print(f"Harm done: {', '.join(told)}, two at once {twins}, a clock an hour off {skewed}.")
    for trial in trials:
        for problem in trial.problems:
            console.print(f"WRONG: {trial}: {problem}", highlight=False)


def _add(table: Table, name: str, trials: Sequence[Trial]) -> None:
    table.add_row(
        name,
        str(len(trials)),
        str(sum(trial.attempts for trial in trials)),
        str(sum(trial.parked > 0 for trial in trials)),
        str(sum(bool(trial.problems) for trial in trials)),
    )
