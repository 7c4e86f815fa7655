"""The agent that the benchmarks run, and ADK's own service for it; nothing of ours is imported here."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types

STEPS = 20
"""Model and tool calls of one run. Each step appends two events."""


class _Script(BaseLlm):
    """Calls the tool a number of times, then says that it is done."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        done = sum(1 for content in llm_request.contents for p in content.parts or [] if p.function_response)
        part = (
            types.Part(text="Done.")
            if done >= STEPS
            else types.Part(function_call=types.FunctionCall(name="look", args={"place": done}))
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def look(place: int) -> dict[str, Any]:
    """Look at a place."""
    return {"seen": place}


def build_app(*plugins: BasePlugin, tool: Any = look) -> App:
    """Build the app anew."""
    agent = LlmAgent(name="bench", model=_Script(), instruction="Look around.", tools=[tool])
    resumable = ResumabilityConfig(is_resumable=True)
    return App(name="bench", root_agent=agent, resumability_config=resumable, plugins=list(plugins))


@asynccontextmanager
async def open_bare_service(dsn: str) -> AsyncIterator[BaseSessionService]:
    """Give ADK's own session service, as its documentation opens it."""
    service = DatabaseSessionService(dsn.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        await service.prepare_tables()
        yield service
    finally:
        await service.close()
