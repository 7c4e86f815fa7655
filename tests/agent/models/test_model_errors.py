"""What a failed call is taken for, with the clients that make it and a real endpoint."""

import json
from importlib.util import find_spec

import google.genai._api_client
import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.genai.types import Content, Part

from support.model_endpoint import Answer, model_endpoint
from triage_agent.exceptions import ReplayError
from triage_agent.models import ModelFailure, build_model, describe

API_KEY = "AQ.a-key-of-no-known-shape"  # pragma: allowlist secret


async def failure(model: BaseLlm, *, stream: bool = False) -> ModelFailure:
    """Ask the model something, and describe what it raises."""
    request = LlmRequest(model=model.model, contents=[Content(role="user", parts=[Part(text="Hello")])])
    try:
        async for _ in model.generate_content_async(request, stream):
            pass
    except Exception as error:  # noqa: BLE001 - which class it is differs from client to client
        return describe(error)
    finally:
        if isinstance(model, Gemini):
            await model.api_client.aio.aclose()
    pytest.fail("the model answered")


def google_error(code: int, status: str, message: str, *details: dict[str, str]) -> str:
    return json.dumps({"error": {"code": code, "status": status, "message": message, "details": details}})


@pytest.fixture(params=["aiohttp", "httpx"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """google-genai takes aiohttp where it is installed: here it is, in an agent's image it need not be."""
    monkeypatch.setattr(google.genai._api_client, "has_aiohttp", request.param == "aiohttp")


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
DATES = {"Date": "Wed, 21 Oct 2026 07:28:00 GMT", "Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT"}

GEMINI_CASES: dict[str, tuple[Answer, ModelFailure]] = {
    "a bad request": (
        Answer(status=400, body=google_error(400, "INVALID_ARGUMENT", "API key not valid.")),
        ModelFailure(
            code="INVALID_ARGUMENT", status=400, retry_after_seconds=None, message="API key not valid."
        ),
    ),
    "a full quota, with Retry-After in seconds": (
        Answer(
            status=429,
            body=google_error(429, "RESOURCE_EXHAUSTED", "Slow down.", RETRY_INFO),
            headers={"Retry-After": "7"},
        ),
        ModelFailure(code="RESOURCE_EXHAUSTED", status=429, retry_after_seconds=7, message="Slow down."),
    ),
    "a full quota, with Retry-After as a date": (
        Answer(status=429, body=google_error(429, "RESOURCE_EXHAUSTED", "Slow down."), headers=DATES),
        ModelFailure(code="RESOURCE_EXHAUSTED", status=429, retry_after_seconds=30, message="Slow down."),
    ),
    "a full quota, with Google's RetryInfo": (
        Answer(status=429, body=google_error(429, "RESOURCE_EXHAUSTED", "Slow down.", RETRY_INFO)),
        ModelFailure(code="RESOURCE_EXHAUSTED", status=429, retry_after_seconds=34.5, message="Slow down."),
    ),
    "a full quota, with a Retry-After that means nothing": (
        Answer(
            status=429,
            body=google_error(429, "RESOURCE_EXHAUSTED", "Slow down."),
            headers={"Retry-After": "soon"},
        ),
        ModelFailure(code="RESOURCE_EXHAUSTED", status=429, retry_after_seconds=None, message="Slow down."),
    ),
    "a broken server that speaks no JSON": (
        Answer(status=500, body="boom", content_type="text/plain"),
        ModelFailure(code="INTERNAL", status=500, retry_after_seconds=None, message="boom"),
    ),
    "a status without a name": (
        Answer(status=418, body="{}"),
        ModelFailure(code="UNKNOWN", status=418, retry_after_seconds=None, message="418 None. {}"),
    ),
}


@pytest.mark.usefixtures("transport")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("answer", "expected"), GEMINI_CASES.values(), ids=GEMINI_CASES)
async def test_what_gemini_answers(answer: Answer, expected: ModelFailure, stream: bool) -> None:
    async with model_endpoint(answer) as endpoint:
        model = build_model("gemini-3.5-flash", base_url=endpoint.url, api_key=API_KEY)
        assert await failure(model, stream=stream) == expected
        assert len(endpoint.requests) == 1, "the client tried again by itself"


@pytest.mark.usefixtures("transport")
async def test_gemini_says_nothing() -> None:
    async with model_endpoint(Answer(body=None)) as endpoint:
        model = build_model("gemini-3.5-flash", base_url=endpoint.url, api_key=API_KEY, timeout_seconds=0.2)
        failed = await failure(model)
    assert (failed.code, failed.status) == ("DEADLINE_EXCEEDED", None)
    assert failed.message


@pytest.mark.usefixtures("transport")
async def test_gemini_is_not_there() -> None:
    model = build_model("gemini-3.5-flash", base_url="http://u:hunter2@127.0.0.1:1", api_key=API_KEY)
    failed = await failure(model)
    assert (failed.code, failed.status) == ("UNAVAILABLE", None)
    assert "hunter2" not in failed.message


@pytest.mark.usefixtures("transport")
async def test_something_else_answers_in_place_of_gemini() -> None:
    async with model_endpoint(Answer(body="<html>", content_type="text/html")) as endpoint:
        model = build_model("gemini-3.5-flash", base_url=endpoint.url, api_key=API_KEY)
        failed = await failure(model)
    assert (failed.code, failed.status) == ("UNKNOWN", None)
    assert failed.message.startswith("JSONDecodeError: ")


async def test_a_key_in_the_environment_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCS_MODEL_API_KEY", API_KEY)
    body = google_error(400, "INVALID_ARGUMENT", f"No such key: {API_KEY}\n see https://x/?key=abc&a=b")
    async with model_endpoint(Answer(status=400, body=body)) as endpoint:
        failed = await failure(build_model("gemini-3.5-flash", base_url=endpoint.url, api_key=API_KEY))
    assert failed.message == "No such key: *** see https://x/?key=***&a=b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("refused at http://me:pw@db/x", "refused at http://***@db/x"),  # pragma: allowlist secret
        ("Authorization: Bearer abc.def was refused", "Authorization: Bearer *** was refused"),
        ("Incorrect API key provided: sk-abc***xyz.", "Incorrect API key provided: ***."),
        ("key AIzaSyD-x_1 is not valid", "key *** is not valid"),
        ("long " * 100, ("long " * 60)[:299] + "…"),
    ],
)
def test_a_message_is_short_and_without_secrets(text: str, shown: str) -> None:
    assert describe(ReplayError(text)).message == shown


def test_an_unknown_error_is_named() -> None:
    assert describe(ValueError("no idea")) == ModelFailure(
        code="UNKNOWN", status=None, retry_after_seconds=None, message="ValueError: no idea"
    )


@pytest.mark.skipif(find_spec("litellm") is None, reason="the litellm extra is not installed")
@pytest.mark.filterwarnings("ignore")
class TestLiteLlm:
    """The errors that LiteLLM makes of its providers' answers; its warnings are its own."""

    @pytest.fixture(params=["openai/gpt-x", "ollama_chat/qwen3"])
    def name(self, request: pytest.FixtureRequest) -> str:
        name: str = request.param
        return name

    @pytest.mark.parametrize(
        ("answer", "code", "retry_after_seconds"),
        [
            (Answer(status=400, body='{"error": "no"}'), "INVALID_ARGUMENT", None),
            (Answer(status=401, body='{"error": "no"}'), "UNAUTHENTICATED", None),
            (
                Answer(status=429, body='{"error": "no"}', headers={"Retry-After": "7"}),
                "RESOURCE_EXHAUSTED",
                7,
            ),
            (Answer(status=500, body="boom"), "INTERNAL", None),
        ],
    )
    async def test_answers(
        self, name: str, answer: Answer, code: str, retry_after_seconds: float | None
    ) -> None:
        async with model_endpoint(answer) as endpoint:
            failed = await failure(build_model(name, base_url=endpoint.url, api_key=API_KEY))
            assert len(endpoint.requests) == 1, "a client tried again by itself"
        assert (failed.code, failed.status) == (code, answer.status)
        assert failed.retry_after_seconds == retry_after_seconds

    async def test_silence(self, name: str) -> None:
        async with model_endpoint(Answer(body=None)) as endpoint:
            model = build_model(name, base_url=endpoint.url, api_key=API_KEY, timeout_seconds=0.2)
            failed = await failure(model)
        assert (failed.code, failed.status) == ("DEADLINE_EXCEEDED", None)

    async def test_nobody_there(self, name: str) -> None:
        failed = await failure(build_model(name, base_url="http://127.0.0.1:1", api_key=API_KEY))
        assert (failed.code, failed.status) == ("UNAVAILABLE", None)
