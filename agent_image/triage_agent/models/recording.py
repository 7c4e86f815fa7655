"""A model whose replies are kept in a file."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from google.adk.models import LlmCapabilities
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse

from triage_agent.models.digest import request_digest


class RecordingModel(BaseLlm):
    """Asks another model, and appends each answered request to a file.

    One line for each: a JSON object with ``model``, the request's ``digest``, and ``replies``, a list of
    ADK's ``LlmResponse`` objects (a streamed reply is several). A call that fails leaves no line.
    """

    inner: BaseLlm
    path: Path

    @property
    def capabilities(self) -> LlmCapabilities:
        """What the other model can do."""
        return self.inner.capabilities

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Pass on what the other model says; the line is written before the last part of it is passed on."""
        # Taken first: models rewrite the request, and ADK the response.
        digest = request_digest(llm_request)
        replies: list[object] = []
        held: LlmResponse | None = None
        async with aclosing(self.inner.generate_content_async(llm_request, stream)) as responses:
            async for response in responses:
                if held is not None:
                    yield held
                replies.append(json.loads(response.model_dump_json(exclude_none=True)))
                held = response
        self._append({"model": self.model, "digest": digest, "replies": replies})
        if held is not None:
            yield held

    def _append(self, exchange: dict[str, object]) -> None:
        # One write in append mode: the lines of several processes do not mix.
        with self.path.open("ab") as stream:
            stream.write(json.dumps(exchange).encode() + b"\n")
