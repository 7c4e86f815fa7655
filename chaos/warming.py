"""Imported once by the server that processes are forked from: all that an agent process imports sooner or later."""

import asyncio
import logging
import tempfile
import warnings
from pathlib import Path

from google.adk.apps.app import App
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

import triage_agent.attempt.process
import triage_agent.attempt.working  # noqa: F401
from chaos.ledger import VARIABLE
from chaos.shapes import SHAPES


async def _run_each_shape() -> None:
    for shape in SHAPES.values():
        runner = InMemoryRunner(app=App(name="chaos", root_agent=shape.build()))
        session = await runner.session_service.create_session(app_name="chaos", user_id="nobody")
        message = Content(role="user", parts=[Part(text="Go.")])
        async for _ in runner.run_async(user_id="nobody", session_id=session.id, new_message=message):
            pass


def _warm() -> None:
    import os

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ[VARIABLE] = str(Path(folder, "ledger"))
        logging.disable(logging.CRITICAL)
        asyncio.run(_run_each_shape())
        del os.environ[VARIABLE]


_warm()
