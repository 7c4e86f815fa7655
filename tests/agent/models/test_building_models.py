"""Model names."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.genai.types import Content, Part

from support.model_endpoint import Answer, model_endpoint
from triage_agent.exceptions import ConfigurationError
from triage_agent.models import build_model
from triage_agent.models.recording import RecordingModel

KEY_VARIABLES = (
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENAI_USE_ENTERPRISE",
    "GOOGLE_GENAI_USE_VERTEXAI",
)
REPLY = (
    '{"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP"}]}'
)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)


async def texts(model: BaseLlm) -> list[str | None]:
    """Say hello to a model; return what it says."""
    request = LlmRequest(model=model.model, contents=[Content(role="user", parts=[Part(text="Hi.")])])
    replies = [reply async for reply in model.generate_content_async(request)]
    return [part.text for reply in replies if reply.content for part in reply.content.parts or []]


async def test_gemini_is_asked_at_the_base_url() -> None:
    async with model_endpoint(Answer(body=REPLY)) as endpoint:
        model = build_model("any-name", base_url=endpoint.url, api_key="any-key")
        assert isinstance(model, Gemini)
        assert await texts(model) == ["Hello."]
        await model.api_client.aio.aclose()
    ((path, _),) = endpoint.requests
    assert path == "/v1beta/models/any-name:generateContent"


@pytest.mark.parametrize("variable", KEY_VARIABLES)
def test_gemini_finds_its_key_by_itself(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "true")
    assert build_model("gemini-3.5-flash").model == "gemini-3.5-flash"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", r"DOCS_MODEL is '': expected a Gemini model, provider/name, record:FILE:NAME or replay:FILE"),
        ("gpt-4o", r"DOCS_MODEL is 'gpt-4o': expected a Gemini model"),
        ("gemini-3.5-flash", r"which needs a key: set DOCS_MODEL_API_KEY or GOOGLE_API_KEY"),
        ("record:gemini-3.5-flash", r"DOCS_MODEL is 'record:gemini-3\.5-flash': expected record:FILE:NAME"),
        ("record::gemini-3.5-flash", r"expected record:FILE:NAME"),
        ("record:a.jsonl:replay:b.jsonl", r"expected record:FILE:NAME"),
        ("record:/nowhere/a.jsonl:gemini-3.5-flash", r"there is no folder /nowhere"),
        ("replay:/nowhere/a.jsonl", r"DOCS_MODEL replays /nowhere/a\.jsonl: No such file or directory"),
    ],
)
def test_a_wrong_name_gets_one_line(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        build_model(name)


def test_record_wraps_any_model(tmp_path: Path) -> None:
    model = build_model(f"record:{tmp_path / 'a.jsonl'}:gemini-3.5-flash", api_key="any-key")
    assert isinstance(model, RecordingModel)
    assert isinstance(model.inner, Gemini)
    assert model.model == "gemini-3.5-flash", "ADK asks for the model by this name"


@pytest.mark.skipif(find_spec("litellm") is None, reason="the litellm extra is not installed")
@pytest.mark.filterwarnings("ignore")
def test_a_model_of_litellm_may_have_a_colon_in_its_name(tmp_path: Path) -> None:
    model = build_model(f"record:{tmp_path / 'a.jsonl'}:ollama_chat/qwen3:8b")
    assert model.model == "ollama_chat/qwen3:8b"


@pytest.mark.skipif(find_spec("litellm") is None, reason="the litellm extra is not installed")
@pytest.mark.filterwarnings("ignore")
async def test_ollama_is_asked_at_the_base_url() -> None:
    body = '{"model": "qwen3", "message": {"role": "assistant", "content": "Hello."}, "done": true}'
    async with model_endpoint(Answer(body=body)) as endpoint:
        model = build_model("ollama_chat/qwen3", base_url=endpoint.url)
        assert await texts(model) == ["Hello."]
    ((path, asked),) = endpoint.requests
    assert (path, asked["model"]) == ("/api/chat", "qwen3")


def test_litellm_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litellm", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'triage-operator\[agent,litellm\]'"):
        build_model("ollama_chat/qwen3")
