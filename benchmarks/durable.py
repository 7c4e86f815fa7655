"""The same agent under the DBOS plugin for ADK, which checkpoints model calls and steps in Postgres."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from dbos import DBOS
from dbos_google_adk import DBOSPlugin
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.genai import types

from benchmarks.apps import build_app


@asynccontextmanager
async def open_dbos(dsn: str, service: BaseSessionService) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Launch DBOS on a database of its own; gives what runs the agent once, with its sessions in ``service``."""
    logging.getLogger("dbos").setLevel(logging.CRITICAL)
    DBOS(config={"name": "bench", "system_database_url": dsn})

    @DBOS.step(name="look")
    async def look(place: int) -> dict[str, Any]:
        """Look at a place."""
        return {"seen": place}

    @DBOS.workflow()
    async def run(session_id: str) -> None:
        message = types.Content(role="user", parts=[types.Part(text="Go.")])
        runner = Runner(app=build_app(DBOSPlugin(), tool=look), session_service=service)
        async for _ in runner.run_async(user_id="user", session_id=session_id, new_message=message):
            pass

    async def run_once() -> None:
        session = await service.create_session(app_name="bench", user_id="user")
        await run(session.id)

    DBOS.launch()
    try:
        yield run_once
    finally:
        DBOS.destroy()
