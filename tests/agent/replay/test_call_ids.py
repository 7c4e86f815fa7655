"""Ids of ours in the protocols of real clients: what is sent back to a model pairs calls and results."""

import json
from typing import Any

import pytest

from support.model_endpoint import Answer, model_endpoint
from support.stage import Stage, an_app
from triage_agent.models import build_model
from triage_contract.states import Outcome

pytestmark = pytest.mark.filterwarnings("ignore")  # of the clients, which warn of themselves


class Endpoint:
    """A tool that, once it was called, has the endpoint say something else."""

    def __init__(self, answer: Answer, then: dict[str, Any]) -> None:
        self.answer = answer
        self.then = then
        self.called = 0

    def read_page(self, name: str) -> str:
        self.called += 1
        if self.called == 2:
            self.answer.body = json.dumps(self.then)
        return f"page {name}"


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": "STOP"}]}


def openai(**message: Any) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": None, **message},
    }
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


@pytest.mark.parametrize("brought", [None, "call_0"])
async def test_gemini(stage: Stage, brought: str | None) -> None:
    call = {"name": "read_page", "args": {"name": "a"}, **({"id": brought} if brought else {})}
    answer = Answer(body=json.dumps(gemini({"functionCall": call})))
    tools = Endpoint(answer, gemini({"text": "Done."}))
    async with model_endpoint(answer) as endpoint:
        model = build_model("any", base_url=endpoint.url, api_key="no-key")
        assert (await stage.attempt(an_app(model, [tools.read_page]))).outcome is Outcome.FINISHED
    parts = [part for content in endpoint.requests[-1][1]["contents"] for part in content["parts"]]
    calls = [part["functionCall"].get("id") for part in parts if "functionCall" in part]
    results = [part["functionResponse"].get("id") for part in parts if "functionResponse" in part]
    assert calls == results
    assert len(calls) == 2
    assert len(set(calls)) == (2 if brought else 1)
    assert brought is not None or calls == [None, None]


async def test_litellm(stage: Stage) -> None:
    pytest.importorskip("litellm", reason="litellm is not installed")
    call = {
        "id": "call_0",
        "type": "function",
        "function": {"name": "read_page", "arguments": '{"name": "a"}'},
    }
    answer = Answer(body=json.dumps(openai(tool_calls=[call])))
    tools = Endpoint(answer, openai(content="Done."))
    async with model_endpoint(answer) as endpoint:
        model = build_model("openai/any", base_url=endpoint.url, api_key="no-key")
        assert (await stage.attempt(an_app(model, [tools.read_page]))).outcome is Outcome.FINISHED
    messages = endpoint.requests[-1][1]["messages"]
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or []]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    assert calls == results
    assert len(set(calls)) == 2
