"""Events as lines for people."""

import json
from typing import Any, Final

from google.adk.events.event import Event

from triage_agent.replay.sanitising import storable

_WIDTH: Final = 160


def event_lines(event: Event) -> list[str]:
    """Describe an event: a line for each call, result and text in it, each of bounded length."""
    lines = [f"{event.author}: {what}" for part in _parts(event) if (what := _describe(part))]
    if event.error_code:
        lines.append(f"{event.author}: error {event.error_code}: {event.error_message or ''}".rstrip())
    if event.actions.end_of_agent:
        lines.append(f"{event.author}: ended")
    return [_bounded(line) for line in lines]


def _parts(event: Event) -> list[Any]:
    return (event.content.parts or []) if event.content else []


def _describe(part: Any) -> str | None:
    if part.function_call is not None:
        return f"calls {part.function_call.name}({_compact(part.function_call.args or {})})"
    if part.function_response is not None:
        return f"{part.function_response.name} returned {_compact(part.function_response.response)}"
    return part.text if part.text and not part.thought else None


def _compact(value: Any) -> str:
    return json.dumps(storable(value), ensure_ascii=False)


def _bounded(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"
