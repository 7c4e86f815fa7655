"""How the runs that are recorded are played: turns of a runner, and a model that replies from a list."""

import copy
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.workflow import BaseNode
from google.genai.types import Content, FunctionCall, FunctionResponse, Part
from pydantic import PrivateAttr

Reply = Part | list[Part] | LlmResponse | Exception
Message = Callable[[Sequence[Event]], Content | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One call of the runner. ``stop_after``: number of events after which it is left, or aborted."""

    message: Message = lambda events: None
    stop_after: int | None = None
    abort: bool = False
    state_delta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A root, and the turns that are played with it. The report is stored before the first."""

    root: BaseNode
    kind: str
    turns: tuple[Turn, ...] = (Turn(),)


class ScriptedModel(BaseLlm):
    """Replies from a list, by the number of its own replies that the request repeats; errors only once."""

    _replies: list[Reply] = PrivateAttr()

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(model="scripted")
        self._replies = list(replies)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        turn = sum(content.role == "model" for content in llm_request.contents)
        reply = self._replies[min(turn, len(self._replies) - 1)]
        if isinstance(reply, Exception):
            self._replies.remove(reply)
            raise reply
        if isinstance(reply, LlmResponse):
            self._replies.remove(reply)
            yield reply
            return
        parts = reply if isinstance(reply, list) else [reply]
        yield LlmResponse(content=Content(role="model", parts=copy.deepcopy(parts)))


def call(tool: str, **args: str | int) -> Part:
    return Part(function_call=FunctionCall(name=tool, args=args))


def say(text: str) -> Part:
    return Part(text=text)


def answer(tool: str, **response: Any) -> Message:
    """The message that answers the last call of a tool from outside."""

    def message(events: Sequence[Event]) -> Content:
        calls = [call for event in events for call in event.get_function_calls() if call.name == tool]
        response_part = FunctionResponse(id=calls[-1].id, name=tool, response=response)
        return Content(role="user", parts=[Part(function_response=response_part)])

    return message
