"""`python -m chaos`: kill agents of every shape everywhere, and say what became of their effects and answers."""

import asyncio
import logging
import time
import warnings

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from chaos.running import Extent, run_trials
from chaos.shapes import SHAPES
from chaos.table import print_table


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("shapes", nargs=-1, type=click.Choice([*SHAPES]), metavar="[SHAPE]...")
@click.option(
    "--sample", default=1.0, show_default=True, help="Share of the boundaries at which a process is killed."
)
@click.option("--cold", default=1, show_default=True, help="Trials of each shape with processes that import.")
@click.option("--seed", default=1, show_default=True, help="What the samples are drawn by.")
def main(shapes: tuple[str, ...], sample: float, cold: int, seed: int) -> None:
    """Kill agents of every shape, or of those named, at every boundary; a ledger of effects is the judge.

    Exits with 1 where any run had an effect twice or not at all, a second answer, or was lost.
    """
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    console = Console(width=None if Console().is_terminal else 110)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    began = time.monotonic()
    with Progress(*columns, console=console) as progress:
        trials = asyncio.run(
            run_trials(shapes or [*SHAPES], Extent(sample=sample, cold=cold), seed=seed, progress=progress)
        )
    print_table(trials, console)
    console.print(f"{len(trials)} runs in {time.monotonic() - began:.0f} s, seed {seed}.")
    raise SystemExit(any(trial.problems for trial in trials))


if __name__ == "__main__":
    main()
