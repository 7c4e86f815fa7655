"""``triage-local``: a local cluster to play with, the demo on one, and parts of one alone."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

# The rest takes a second to import: the commands do that, so that help comes at once.
from triage_local.exceptions import LocalClusterError

if TYPE_CHECKING:
    from triage_local.apiserver import ApiServer
    from triage_local.cluster import Gemini
    from triage_local.lone import LoneApiServer

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C or SIGTERM, as of a shell command that SIGINT ended."""

_KEY: Final = "GOOGLE_API_KEY"

_model = click.option(
    "--model",
    metavar="NAME",
    envvar="DOCS_MODEL",
    show_envvar=True,
    help=f"A Gemini model, used with the key in {_KEY}.  [default: a scripted model, which needs no key]",
)
_api_server = click.option(
    "--api-server",
    type=click.Choice(["emulated", "real"]),
    default="emulated",
    show_default=True,
    help="real: kube-apiserver, etcd and kube-controller-manager, which have to be on the PATH.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="triage-operator")
def main() -> None:
    """Run a cluster on this machine alone: API server, two nodes, Postgres, a model, and the operator.

    Pods are processes. Nothing but loopback ports is used, and nothing is left at the end.
    """


@main.command()
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write for kubectl; must not exist, and is removed at the end.  [default: a temporary one]",
)
@_model
@_api_server
def up(kubeconfig: Path | None, model: str | None, api_server: str) -> None:
    """Start a local cluster with the operator in it, and keep it until Ctrl-C."""
    if kubeconfig is not None and kubeconfig.exists():
        raise click.ClickException(f"{kubeconfig} exists: name a file that does not")
    if kubeconfig is not None and not os.access(kubeconfig.parent, os.W_OK):
        raise click.ClickException(f"{kubeconfig} cannot be written: see whether its folder is there")
    from triage_local.playing import play

    _run(play(kubeconfig=kubeconfig, gemini=_gemini(model), server=_server(api_server)))


@main.command()
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("build/demo"),
    show_default=True,
    help="Folder for summary.json and the operator's log.",
)
@_model
@_api_server
def demo(output: Path, model: str | None, api_server: str) -> None:
    """Take seven runs to filed issues while their agents are killed, and check what came of it.

    One is killed right after its issue was filed, one runs out of memory, one is drained off its node in the
    middle of a tool, one loses its pod while the operator is dead, one is left alone. Then a finished run is
    resumed by hand, which is refused, and a run without an idempotency key shows the duplicate that the others do
    not have. The exit status is 1 if anything is not as it should be.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.ClickException(f"{output} cannot be made: {error.strerror}") from error
    from triage_local.demo import show

    _run(show(gemini=_gemini(model), folder=output, server=_server(api_server)))


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free one."
)
def model(host: str, port: int) -> None:
    """Serve the scripted model alone, for agents in a cluster of their own, until Ctrl-C.

    It answers the docs-triage agent's requests, and those whose report dictates the calls to make.
    """
    from triage_local.serving_model import serve_model

    _run(serve_model(host=host, port=port))


@main.command(
    "api-server", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option("--controllers", is_flag=True, help="With kube-controller-manager, for what goes by itself.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def lend_api_server(controllers: bool, command: tuple[str, ...]) -> None:
    """Run COMMAND beside a real API server without nodes, which it finds by KUBECONFIG.

    Without a command its kubeconfig's path is printed, and it stays until standard input ends. The exit status is
    that of the command. What it is made of has to be on the PATH: etcd, kube-apiserver, kube-controller-manager.
    """
    from triage_local.lone.lending import lend

    _run(lend(command, controllers=controllers))


def _gemini(model: str | None) -> "Gemini | None":
    if model is None:
        return None
    if "/" in model or ":" in model:
        raise click.ClickException(f"model {model} is none of Gemini's, and others are not known here")
    api_key = os.environ.get(_KEY)
    if not api_key:
        raise click.ClickException(f"model {model} needs a key: set {_KEY}, or leave the scripted model")
    from triage_local.cluster import Gemini

    return Gemini(name=model, api_key=api_key)


def _server(kind: str) -> "ApiServer | LoneApiServer":
    if kind == "real":
        from triage_local.lone import LoneApiServer

        return LoneApiServer()
    from triage_local.apiserver import ApiServer

    return ApiServer()


def _run(work: Coroutine[None, None, int]) -> None:
    """Do the work of a command, until its end or a signal, and exit with what it gives."""
    # What the cluster's parts have to say is in its log files; here are only problems.
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    try:
        sys.exit(asyncio.run(_until_told(work)))
    except LocalClusterError as error:
        raise click.ClickException(str(error)) from error


async def _until_told(work: Coroutine[None, None, int]) -> int:
    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return INTERRUPTED
