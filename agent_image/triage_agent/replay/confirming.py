"""The ADK plugin behind which a person confirms a call once.

A node of a Workflow starts over, so the call that a person confirmed is made again; ADK remembers the answer for a call
that goes on only, and would ask again.
"""

from typing import Any

from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext
from google.adk.utils._function_call_names import REQUEST_CONFIRMATION_FUNCTION_CALL_NAME
from typing_extensions import override


class ConfirmingPlugin(BasePlugin):
    """Shows a tool the answer that its call was given in the session."""

    def __init__(self) -> None:
        super().__init__(name="triage_confirming")

    @override
    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        if tool_context.tool_confirmation is None:
            events = [
                event
                for event in tool_context.session.events
                if event.invocation_id == tool_context.invocation_id
            ]
            tool_context.tool_confirmation = _given(events, tool_context.function_call_id)
        return None


def _given(events: list[Event], call_id: str | None) -> ToolConfirmation | None:
    """Find the last answer of a person to the question whether a call may run; None: there is none."""
    asked = {
        call.id
        for event in events
        for call in event.get_function_calls()
        if call.name == REQUEST_CONFIRMATION_FUNCTION_CALL_NAME
        and (call.args or {}).get("originalFunctionCall", {}).get("id") == call_id
    }
    answers = [
        response.response
        for event in events
        if event.author == "user"
        for response in event.get_function_responses()
        if response.id in asked and response.response is not None
    ]
    return ToolConfirmation.from_response_dict(answers[-1]) if answers else None
