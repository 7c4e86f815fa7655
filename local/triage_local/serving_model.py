"""The scripted model as a server of its own."""

import asyncio

import click

from triage_local.exceptions import ProgramError
from triage_local.model import DictatedScript, ScriptedModel


async def serve_model(*, host: str, port: int) -> int:
    """Serve until cancelled.

    Raises:
        ProgramError: the address is taken, or not ours.
    """
    model = ScriptedModel(DictatedScript(), host=host, port=port)
    try:
        await model.start()
    except OSError as error:
        raise ProgramError(f"the model cannot listen on {host}:{port}: {error.strerror}") from error
    try:
        click.echo(f"The scripted model listens on {model.url}")
        await asyncio.Event().wait()
    finally:
        await model.close()
    return 0
