"""The scripted model, asked by the real google-genai client."""

import asyncio
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from google.genai import Client, errors, types

from triage_local.model import Call, DocsTriageScript, Reply, ScriptedModel, ToolAnswer, Turn

# google-genai subclasses aiohttp's session, which aiohttp discourages.
REPORT = "The tokens page says that deploy tokens never expire. They expire after 90 days."
PAGES = {
    "install": "# Install\nRun the installer.",
    "deploy": "# Deploy\nRun `deploy`.",
    "tokens": "# Tokens\nDeploy tokens never expire.\nKeep them secret.",
}


def _declare(name: str, *parameters: str) -> types.FunctionDeclaration:
    schema = {"type": "object", "properties": {parameter: {"type": "string"} for parameter in parameters}}
    return types.FunctionDeclaration(name=name, description=name, parameters_json_schema=schema)


_CONFIG = types.GenerateContentConfig(
    tools=[
        types.Tool(
            function_declarations=[
                _declare("list_pages"),
                _declare("read_page", "name"),
                _declare("file_issue", "title", "body"),
            ]
        )
    ],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
)
_TOOLS: dict[str, Callable[..., dict[str, object]]] = {
    "list_pages": lambda: {"pages": list(PAGES)},
    "read_page": lambda name: {"text": PAGES[name]},
    "file_issue": lambda title, body: {"number": 7, "title": title, "body": body},
}


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as server:
        yield server


def _client(model: ScriptedModel) -> Client:
    return Client(api_key="not-a-key", http_options=types.HttpOptions(base_url=model.url))


async def _ask(model: ScriptedModel, contents: list[types.Content], *, stream: bool) -> list[types.Part]:
    client = _client(model).aio
    try:
        if not stream:
            whole = await client.models.generate_content(model="gemini-x", contents=contents, config=_CONFIG)
            assert whole.usage_metadata is not None
            assert whole.usage_metadata.total_token_count
            return whole.candidates[0].content.parts  # type: ignore[index, union-attr, return-value]
        parts: list[types.Part] = []
        chunks = await client.models.generate_content_stream(
            model="gemini-x", contents=contents, config=_CONFIG
        )
        async for chunk in chunks:
            assert chunk.candidates is not None
            parts += chunk.candidates[0].content.parts or []  # type: ignore[union-attr]
            last = chunk
        assert last.usage_metadata is not None
        assert last.candidates[0].finish_reason == types.FinishReason.STOP  # type: ignore[index]
        return parts
    finally:
        await client.aclose()


def _says(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


async def _converse(model: ScriptedModel, report: str, *, stream: bool = False) -> list[types.Content]:
    """Run the triage as an agent does, until the model says a text; the whole conversation."""
    contents = [_says(report)]
    while True:
        parts = await _ask(model, contents, stream=stream)
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return contents
        answers = [
            types.Part.from_function_response(
                name=call.name or "", response=_TOOLS[call.name or ""](**call.args or {})
            )
            for call in calls
        ]
        contents.append(types.Content(role="user", parts=answers))


def _calls(contents: list[types.Content]) -> list[types.FunctionCall]:
    return [part.function_call for content in contents for part in content.parts or [] if part.function_call]


@pytest.mark.parametrize("stream", [False, True])
async def test_it_lists_reads_the_fitting_page_files_and_names_the_issue(
    model: ScriptedModel, stream: bool
) -> None:
    conversation = await _converse(model, REPORT, stream=stream)
    calls = _calls(conversation)
    assert [call.name for call in calls] == ["list_pages", "read_page", "file_issue"]
    assert calls[1].args == {"name": "tokens"}
    issue = calls[2].args or {}
    assert issue["title"] == "Docs: The tokens page says that deploy tokens never expire"
    assert "> Deploy tokens never expire." in issue["body"]
    assert {call.id for call in calls} == {None}
    assert "".join(part.text or "" for part in conversation[-1].parts or []) == "Filed as issue 7."
    assert [asked.step for asked in model.requests] == ["list_pages", "read_page", "file_issue", "text"]
    assert {asked.streamed for asked in model.requests} == {stream}


async def test_the_same_question_gets_the_same_answer_and_the_same_digest(model: ScriptedModel) -> None:
    answers = [await _ask(model, [_says(REPORT)], stream=False) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len({asked.digest for asked in model.requests}) == 1


async def test_ids_do_not_change_a_digest(model: ScriptedModel) -> None:
    for id_ in ("call-1", "call-2"):
        call = types.Part(function_call=types.FunctionCall(name="list_pages", args={}, id=id_))
        answer = types.Part(
            function_response=types.FunctionResponse(name="list_pages", response={"pages": []}, id=id_)
        )
        contents = [
            _says(REPORT),
            types.Content(role="model", parts=[call]),
            types.Content(role="user", parts=[answer]),
        ]
        parts = await _ask(model, contents, stream=False)
        assert parts[0].text == "There are no pages to read."
    assert len({asked.digest for asked in model.requests}) == 1


async def test_a_second_report_in_a_conversation_starts_over(model: ScriptedModel) -> None:
    first = await _converse(model, REPORT)
    parts = await _ask(model, [*first, _says("The install page lacks a checksum.")], stream=False)
    assert parts[0].function_call is not None
    assert parts[0].function_call.name == "list_pages"
    assert len(model.asked("checksum")) == 1


def test_a_report_can_ask_for_the_page_and_the_issue_by_one_reply() -> None:
    reply = DocsTriageScript()(
        Turn(
            model="scripted",
            report="The tokens page is wrong. Read it and file the issue by two calls at once.",
            answers=(ToolAnswer(name="list_pages", response={"pages": ["install", "tokens"]}),),
            tools={"list_pages": (), "read_page": ("name",), "file_issue": ("title", "body")},
        )
    )
    assert [(call.name, call.arguments.get("name")) for call in reply.calls] == [
        ("read_page", "tokens"),
        ("file_issue", None),
    ]


async def test_pages_can_be_read_in_parallel_under_repeated_ids() -> None:
    async with ScriptedModel(DocsTriageScript(parallel_reads=2, repeated_ids=True)) as model:
        calls = _calls(await _converse(model, REPORT))
    assert [call.name for call in calls] == ["list_pages", "read_page", "read_page", "file_issue"]
    assert [call.args for call in calls[1:3]] == [{"name": "tokens"}, {"name": "deploy"}]
    assert [call.id for call in calls] == ["call_0", "call_0", "call_1", "call_0"]


async def test_a_script_is_any_function() -> None:
    def asks_first(turn: Turn) -> Reply:
        if turn.answers_of("ask"):
            return Reply(text=f"{turn.model} heard {len(turn.contents)} contents")
        return Reply(text="Wait.", calls=(Call(name="ask", id="mine"),))

    async with ScriptedModel(asks_first) as model:
        parts = await _ask(model, [_says("Hello")], stream=True)
        assert [part.text or part.function_call.id for part in parts] == ["Wait.", "mine"]  # type: ignore[union-attr]
        answer = types.Part.from_function_response(name="ask", response={})
        contents = [_says("Hello"), types.Content(role="user", parts=[answer])]
        assert (await _ask(model, contents, stream=False))[0].text == "gemini-x heard 2 contents"


async def _post_fault(model: ScriptedModel, **fault: object) -> int:
    async with aiohttp.ClientSession(model.url) as session, session.post("/faults", json=fault) as response:
        return response.status


@pytest.mark.parametrize("status", [400, 429, 500, 503])
async def test_errors_befall_as_many_requests_as_asked_for(model: ScriptedModel, status: int) -> None:
    assert await _post_fault(model, status=status, times=2) == 204
    for _ in range(2):
        with pytest.raises(errors.APIError) as caught:
            await _ask(model, [_says(REPORT)], stream=False)
        assert caught.value.code == status
    assert await _ask(model, [_says(REPORT)], stream=False)
    assert [asked.status for asked in model.requests] == [status, status, 200]


async def test_a_429_says_when_to_come_back(model: ScriptedModel) -> None:
    await _post_fault(model, status=429, retry_after_seconds=3)
    with pytest.raises(errors.ClientError) as caught:
        await _ask(model, [_says(REPORT)], stream=True)
    assert caught.value.status == "RESOURCE_EXHAUSTED"
    assert caught.value.response.headers["Retry-After"] == "3"
    assert caught.value.details["error"]["details"][0]["retryDelay"] == "3s"


async def test_a_fault_waits_for_its_report_and_its_step(model: ScriptedModel) -> None:
    await _post_fault(model, status=500, report="tokens page", step="file_issue")
    await _converse(model, "The install page lacks a checksum.")
    with pytest.raises(errors.ServerError):
        await _converse(model, REPORT)
    assert [asked.step for asked in model.asked(REPORT)] == ["list_pages", "read_page", "file_issue"]


async def test_a_request_hangs_until_it_is_released(model: ScriptedModel) -> None:
    await _post_fault(model, hang=True)
    asking = asyncio.create_task(_ask(model, [_says(REPORT)], stream=False))
    async with asyncio.timeout(10), aiohttp.ClientSession(model.url) as session:
        while True:
            async with session.get("/requests") as response:
                if listed := (await response.json())["requests"]:
                    break
        assert listed[0]["status"] is None
        assert not asking.done()
        async with session.post("/release") as response:
            assert response.status == 204
        assert await asking
    assert model.requests[0].status == 200


async def test_a_delay_comes_before_the_answer(model: ScriptedModel) -> None:
    await _post_fault(model, delay_seconds=0.05)
    started = asyncio.get_running_loop().time()
    await _ask(model, [_says(REPORT)], stream=False)
    assert asyncio.get_running_loop().time() - started >= 0.05


async def test_it_closes_while_a_request_hangs() -> None:
    async with aiohttp.ClientSession() as session:
        async with ScriptedModel() as model:
            await _post_fault(model, hang=True)
            url = f"{model.url}/v1beta/models/gemini-x:generateContent"
            asking = asyncio.create_task(session.post(url, json={"contents": []}))
            while not model.requests:
                await asyncio.sleep(0.01)
        with pytest.raises(aiohttp.ClientError):
            await asking
    assert model.requests[0].status is None


@pytest.mark.parametrize("fault", [{}, {"status": 200}, {"hang": True, "times": 0}, {"typo": 1}])
async def test_a_fault_that_means_nothing_is_refused(model: ScriptedModel, fault: dict[str, object]) -> None:
    assert await _post_fault(model, **fault) == 400


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"{}", b'{"contents": [{"parts": [{"functionResponse": {}}]}]}']
)
async def test_a_body_that_is_no_request_gets_gemini_s_400(model: ScriptedModel, body: bytes) -> None:
    path = "/v1beta/models/gemini-x:generateContent"
    async with aiohttp.ClientSession(model.url) as session, session.post(path, data=body) as response:
        assert response.status == 400
        assert (await response.json())["error"]["status"] == "INVALID_ARGUMENT"
    assert model.requests == []


async def test_what_was_asked_can_be_forgotten(model: ScriptedModel) -> None:
    await _ask(model, [_says(REPORT)], stream=False)
    async with aiohttp.ClientSession(model.url) as session, session.delete("/requests") as response:
        assert response.status == 204
    assert model.requests == []
