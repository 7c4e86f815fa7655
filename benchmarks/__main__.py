"""`python -m benchmarks`: print all measurements, or those that are named."""

import asyncio
import logging
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from benchmarks.figures import Measured, print_table
from benchmarks.fleet import measure_fleet
from benchmarks.memory import measure_footprints
from benchmarks.recovery import measure_recoveries
from benchmarks.sessions import measure_sessions
from benchmarks.splits import Recoveries
from benchmarks.steps import measure_steps
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_local.postgres import PostgresServer

SECTIONS = ("recovery", "steps", "sessions", "memory", "fleet")
ON_A_CLUSTER = "kind"
"""Only where it is named: it takes the cluster of ``make cluster`` with the images on its nodes."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("sections", nargs=-1, type=click.Choice((*SECTIONS, ON_A_CLUSTER)))
@click.option(
    "--rounds", default=10, show_default=True, help="Recoveries of each kind, and runs of each side."
)
@click.option("--runs", default=1000, show_default=True, help="Runs of the fleet.")
def main(sections: tuple[str, ...], rounds: int, runs: int) -> None:
    """Measure recovery, the cost of fence and journals, and the operator with many runs."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    for section in sections or SECTIONS:
        match section:
            case "recovery":
                recoveries = asyncio.run(measure_recoveries(rounds=rounds))
                _print_recoveries("Loss to the next attempt's first durable write, cold process", recoveries)
            case "steps":
                with _server() as server:
                    print_table("What fence and journals cost", asyncio.run(_steps(server, rounds)))
            case "sessions":
                with _server() as server:
                    url = DatabaseUrl.parse(server.create_database("ours"))
                    asyncio.run(migrate(url))
                    print_table("Long sessions", asyncio.run(measure_sessions(url)))
            case "memory":
                with _server() as server:
                    ours = server.create_database("ours")
                    asyncio.run(migrate(DatabaseUrl.parse(ours)))
                    for footprint in measure_footprints(server.create_database("bare"), ours):
                        click.echo(
                            f"  {footprint.name}: {footprint.resident_mib:.0f} MiB resident at most,"
                            f" {footprint.connections} connections to Postgres at most"
                        )
            case "fleet":
                click.echo("The operator with many runs")
                for line in asyncio.run(measure_fleet(runs)).lines():
                    click.echo(f"  {line}")
            case "kind":
                # The tests' way to the cluster, which other sections can do without.
                from benchmarks.on_kind import measure_on_kind

                losses = asyncio.run(measure_on_kind(rounds=rounds))
                title = "Loss to the next attempt's first durable write, on kind"
                _print_recoveries(title, losses.ours, losses.jobs)


def _print_recoveries(title: str, recoveries: Sequence[Recoveries], others: Sequence[Measured] = ()) -> None:
    """Print what recoveries took, beside others of which only that is known, and where the time went."""
    print_table(title, [*(each.whole for each in recoveries), *others], unit="s")
    for each in recoveries:
        print_table(f"{each.whole.name}: where the time goes", each.parts)


async def _steps(server: PostgresServer, rounds: int) -> list[Measured]:
    url = DatabaseUrl.parse(server.create_database("ours"))
    await migrate(url)
    return await measure_steps(
        server.create_database("bare"), server.create_database("dbos"), url, rounds=rounds
    )


@contextmanager
def _server() -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory() as folder, PostgresServer(Path(folder)) as server:
        yield server


if __name__ == "__main__":
    main()
