"""``python -m observe``: an incident before a real Prometheus, and whether dashboards and alerts tell it truly."""

import asyncio
import logging
import signal
from collections.abc import Coroutine
from pathlib import Path

import click

from triage_local.cli import INTERRUPTED
from triage_local.exceptions import LocalClusterError


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--stay", is_flag=True, help="Keep cluster and Prometheus up until Ctrl-C, and say where they are."
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for a picture of the dashboard Recovery over the incident: SVG, PNG or PDF by its suffix.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/observe"),
    show_default=True,
    help="Folder for the operators' logs.",
)
def main(stay: bool, picture: Path | None, output: Path) -> None:
    """Let an incident happen on a local cluster, and check every query of every dashboard and alert.

    The exit status is 1 where an answer is not what the tables of runs say, or an alert fires that should not.
    """
    from observe.observing import observe

    output.mkdir(parents=True, exist_ok=True)
    log = output / "operator.log"
    log.unlink(missing_ok=True)
    # What the cluster's parts have to say is in its log files; here are only problems.
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    try:
        status = asyncio.run(_until_told(observe(log=log, stay=stay, picture=picture)))
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error
    raise SystemExit(status)


async def _until_told(work: Coroutine[None, None, int]) -> int:
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return INTERRUPTED


if __name__ == "__main__":
    main()
