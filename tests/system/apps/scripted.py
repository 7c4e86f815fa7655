"""An ADK app that needs no model endpoint: it calls its tools one after the other, and then says that it is done."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Script(BaseLlm):
    """Calls the next tool that has not answered."""

    model: str = "script"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        answered = sum(part.function_response is not None for part in parts)
        tools = list(llm_request.tools_dict)
        if answered < len(tools):
            part = types.Part(function_call=types.FunctionCall(name=tools[answered], args={}))
        else:
            part = types.Part(text="Done.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def build(*tools: Callable[..., Any]) -> App:
    """Build an app whose one agent has these tools, which change nothing."""
    for tool in tools:
        tool.triage_kind = "ReadOnly"  # type: ignore[attr-defined]
    return App(name="own", root_agent=LlmAgent(name="own", model=Script(), tools=list(tools)))
