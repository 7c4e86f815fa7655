"""Recording a model and giving its replies again."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai.types import (
    Content,
    FunctionCall,
    FunctionDeclaration,
    FunctionResponse,
    GenerateContentConfig,
    GenerateContentResponseUsageMetadata,
    Part,
    Tool,
)
from pydantic import PrivateAttr

from triage_agent.exceptions import ConfigurationError, ReplayError
from triage_agent.models.recording import RecordingModel
from triage_agent.models.replaying import ReplayModel


class Scripted(BaseLlm):
    """Gives its lists of responses in order, then breaks."""

    model: str = "scripted"
    _script: list[list[LlmResponse]] = PrivateAttr(default_factory=list)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        llm_request.contents.append(user("Models rewrite requests."))
        if not self._script:
            raise ConnectionResetError("gone")
        for response in self._script.pop(0):
            yield response


def user(text: str) -> Content:
    return Content(role="user", parts=[Part(text=text)])


def request(*contents: Content, instruction: str = "Be short.", tools: tuple[str, ...] = ()) -> LlmRequest:
    declared = [Tool(function_declarations=[FunctionDeclaration(name=name) for name in tools])]
    config = GenerateContentConfig(system_instruction=instruction, tools=list(declared))
    return LlmRequest(contents=list(contents), config=config)


def says(text: str, *, partial: bool | None = None) -> LlmResponse:
    return LlmResponse(content=Content(role="model", parts=[Part(text=text)]), partial=partial)


def called(call_id: str | None, **args: Any) -> Content:
    call = FunctionCall(id=call_id, name="file_issue", args=args)
    return Content(role="model", parts=[Part(function_call=call, thought_signature=b"\x00\xff")])


def returned(call_id: str | None, **response: Any) -> Content:
    answer = FunctionResponse(id=call_id, name="file_issue", response=response)
    return Content(role="user", parts=[Part(function_response=answer)])


async def ask(model: BaseLlm, asked: LlmRequest, *, stream: bool = False) -> list[LlmResponse]:
    return [reply async for reply in model.generate_content_async(asked, stream)]


async def recorded(
    path: Path, *exchanges: tuple[LlmRequest, list[LlmResponse]], stream: bool = False
) -> None:
    scripted = Scripted()
    scripted._script.extend(responses for _, responses in exchanges)
    model = RecordingModel(model="scripted", inner=scripted, path=path)
    for asked, responses in exchanges:
        assert await ask(model, asked, stream=stream) == responses


async def test_a_recorded_reply_is_given_again_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    reply = LlmResponse(
        content=called(None, title="Tokens expire", body="Täglich 🔑"),
        usage_metadata=GenerateContentResponseUsageMetadata(prompt_token_count=12, candidates_token_count=3),
        model_version="scripted-1",
    )
    await recorded(path, (request(user("Hello")), [reply]))

    assert await ask(ReplayModel(path=path), request(user("Hello"))) == [reply]


async def test_who_gets_a_reply_may_write_into_it(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    await recorded(path, (request(user("Hello")), [LlmResponse(content=called(None, title="T"))]))
    model = ReplayModel(path=path)

    (first,) = await ask(model, request(user("Hello")))
    first.get_function_calls()[0].id = "call-1"
    (second,) = await ask(model, request(user("Hello")))

    assert second.get_function_calls()[0].id is None


async def test_equal_requests_are_answered_in_order_and_then_by_the_last(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    await recorded(
        path,
        (request(user("Hello")), [says("One.")]),
        (request(user("Something else")), [says("Other.")]),
        (request(user("Hello")), [says("Two.")]),
    )
    model = ReplayModel(path=path)

    replies = [await ask(model, request(user("Hello"))) for _ in range(3)]

    assert replies == [[says("One.")], [says("Two.")], [says("Two.")]]


async def test_call_ids_and_results_do_not_tell_requests_apart(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    asked = request(user("Hello"), called("call-1", title="T"), returned("call-1", number=1))
    await recorded(path, (asked, [says("Filed.")]))

    again = request(
        user("Hello"), called("adk-7", title="T"), returned("adk-7", number=41, duplicate_request=True)
    )

    assert await ask(ReplayModel(path=path), again) == [says("Filed.")]


@pytest.mark.parametrize(
    "other",
    [
        request(user("Good bye")),
        request(user("Hello"), instruction="Be long."),
        request(user("Hello"), tools=("file_issue",)),
        request(user("Hello"), called("call-1", title="T"), returned("call-1", number=1)),
    ],
    ids=["another message", "another instruction", "another tool", "a later turn"],
)
async def test_a_request_that_the_file_does_not_hold(tmp_path: Path, other: LlmRequest) -> None:
    path = tmp_path / "replies.jsonl"
    await recorded(path, (request(user("Hello")), [says("Hi.")]))

    with pytest.raises(
        ReplayError, match=r"replies\.jsonl holds no reply to request [0-9a-f]{12}, number \d"
    ):
        await ask(ReplayModel(path=path), other)


async def test_the_error_says_where_in_the_conversation(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    path.touch()
    later = request(user("Hello"), called("call-1", title="T"), returned("call-1", number=1))

    with pytest.raises(ReplayError, match=r"number 3 of a conversation, after results of file_issue$"):
        await ask(ReplayModel(path=path), later)


PARTS = [says("He", partial=True), says("llo.", partial=True), says("Hello.")]


async def test_a_streamed_reply_is_streamed_again(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    await recorded(path, (request(user("Hello")), PARTS), stream=True)
    model = ReplayModel(path=path)

    assert await ask(model, request(user("Hello")), stream=True) == PARTS
    assert await ask(model, request(user("Hello")), stream=False) == [says("Hello.")]


async def test_the_line_is_there_before_the_last_part_is_given(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    scripted = Scripted()
    scripted._script.append(PARTS)
    model = RecordingModel(model="scripted", inner=scripted, path=path)

    written = [path.exists() async for _ in model.generate_content_async(request(user("Hello")), True)]

    assert written == [False, False, True]


async def test_a_failed_call_is_passed_on_and_leaves_no_line(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    model = RecordingModel(model="scripted", inner=Scripted(), path=path)

    with pytest.raises(ConnectionResetError):
        await ask(model, request(user("Hello")))
    assert not path.exists()


async def test_lines_are_added_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    await recorded(path, (request(user("Hello")), [says("Hi.")]))
    await recorded(path, (request(user("Good bye")), [says("Bye.")]))

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["replies"][0]["content"]["parts"][0]["text"] for line in lines] == ["Hi.", "Bye."]
    assert {line["model"] for line in lines} == {"scripted"}


@pytest.mark.parametrize("line", ["", "{", "[]", '{"digest": "abc", "replies": []}', '{"replies": [{}]}'])
def test_a_line_that_is_no_exchange_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text('{"digest": "abc", "replies": [{}]}\n' + line + "\n")

    with pytest.raises(ConfigurationError, match=r"replies\.jsonl: line 2 is no recorded reply: \w"):
        ReplayModel(path=path)
