"""A model that replies from a list, and notes in the ledger that it was asked."""

import copy
from collections.abc import AsyncGenerator, Sequence

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai.types import Content, FunctionCall, Part
from pydantic import PrivateAttr

from chaos.ledger import Ledger

Reply = Part | Sequence[Part]


class ScriptedModel(BaseLlm):
    """Replies by the number of its own replies that the request repeats: the same request gets the same reply."""

    _replies: list[Reply] = PrivateAttr()

    def __init__(self, name: str, replies: Sequence[Reply]) -> None:
        super().__init__(model=name)
        self._replies = list(replies)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """See ``BaseLlm``."""
        reply = await self.answer(llm_request)
        if stream:
            yield LlmResponse(content=reply.content, partial=True)
        yield reply

    async def answer(self, request: LlmRequest) -> LlmResponse:
        """Give the reply to a request."""
        Ledger.of_process().ask(self.model)
        turn = sum(content.role == "model" for content in request.contents)
        reply = self._replies[min(turn, len(self._replies) - 1)]
        parts = [reply] if isinstance(reply, Part) else [*reply]
        return LlmResponse(content=Content(role="model", parts=copy.deepcopy(parts)))


def call(tool: str, **args: str) -> Part:
    """A function call."""
    return Part(function_call=FunctionCall(name=tool, args=args))


def say(text: str) -> Part:
    """A text."""
    return Part(text=text)
