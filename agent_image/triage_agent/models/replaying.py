"""A model that answers from a file of recorded replies, offline."""

from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from triage_agent.exceptions import ConfigurationError, ReplayError
from triage_agent.models.digest import request_digest
from triage_contract.names import DocsEnv


class Exchange(BaseModel):
    """A line of the file: a request's digest, and what was replied to it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    digest: str
    replies: tuple[LlmResponse, ...] = Field(min_length=1)


class ReplayModel(BaseLlm):
    """Gives recorded replies again: for equal requests in the order of the file, and then the last one."""

    model: str = "replay"
    path: Path
    _exchanges: dict[str, list[Exchange]] = PrivateAttr(default_factory=dict)
    _asked: Counter[str] = PrivateAttr(default_factory=Counter)

    def model_post_init(self, context: Any, /) -> None:
        """Read the file.

        Raises:
            ConfigurationError: it is not there, or a line of it is no exchange.
        """
        super().model_post_init(context)
        try:
            lines = self.path.read_bytes().splitlines()
        except OSError as error:
            raise ConfigurationError(f"{DocsEnv.MODEL} replays {self.path}: {error.strerror}") from error
        for number, line in enumerate(lines, start=1):
            try:
                exchange = Exchange.model_validate_json(line)
            except ValidationError as error:
                reason = error.errors(include_url=False, include_input=False)[0]["msg"]
                raise ConfigurationError(
                    f"{DocsEnv.MODEL} replays {self.path}: line {number} is no recorded reply: {reason}"
                ) from error
            self._exchanges.setdefault(exchange.digest, []).append(exchange)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Give the recorded reply, in its parts where both the caller and the recording stream.

        Raises:
            ReplayError: the file holds none.
        """
        digest = request_digest(llm_request)
        exchanges = self._exchanges.get(digest)
        if exchanges is None:
            raise ReplayError(f"{self.path} holds no reply to request {digest[:12]}, {_summary(llm_request)}")
        exchange = exchanges[min(self._asked[digest], len(exchanges) - 1)]
        self._asked[digest] += 1
        for reply in exchange.replies:
            if stream or not reply.partial:
                # ADK writes call ids into what it gets.
                yield reply.model_copy(deep=True)


def _summary(request: LlmRequest) -> str:
    """Say where in a conversation a request stands, without its words."""
    last = (request.contents[-1].parts or []) if request.contents else []
    answered = [part.function_response.name for part in last if part.function_response]
    after = f"results of {', '.join(map(str, answered))}" if answered else "a message"
    return f"number {len(request.contents)} of a conversation, after {after}"
