"""Gemini's JSON, both ways: https://ai.google.dev/api/generate-content."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from triage_local.model.script import Reply, ToolAnswer, Turn

_CHARACTERS_PER_TOKEN = 4
_STREAMED_WORDS = 4

_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def parse_turn(model: str, body: Mapping[str, Any]) -> Turn:
    """Take from a request what a script needs: everything after the user's last words.

    Raises:
        KeyError, TypeError, AttributeError: The body is not shaped as the API wants it.
    """
    report = ""
    answers: list[ToolAnswer] = []
    for content in body["contents"]:
        parts = content.get("parts") or []
        texts = [part["text"] for part in parts if "text" in part]
        if content.get("role", "user") == "user" and texts:
            report, answers = "\n".join(texts), []
        for part in parts:
            if (answer := part.get("functionResponse")) is not None:
                answers.append(ToolAnswer(name=answer["name"], response=answer.get("response") or {}))
    return Turn(
        model=model, report=report, answers=tuple(answers), tools=_tools(body), contents=body["contents"]
    )


def _tools(body: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    declared: dict[str, tuple[str, ...]] = {}
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations") or []:
            # The API takes both spellings of its JSON; google-genai sends this field in the second.
            keys = ("parametersJsonSchema", "parameters_json_schema", "parameters")
            schema: Mapping[str, Any] = next((function[key] for key in keys if key in function), {})
            declared[function["name"]] = tuple(schema.get("properties") or {})
    return declared


def build_response(reply: Reply, turn: Turn, response_id: str) -> dict[str, Any]:
    """The whole answer, as ``generateContent`` gives it."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    for call in reply.calls:
        named = {"name": call.name, "args": dict(call.arguments)}
        parts.append({"functionCall": named if call.id is None else {**named, "id": call.id}})
    return _envelope(parts, "STOP", turn, response_id)


def build_chunks(reply: Reply, turn: Turn, response_id: str) -> Iterator[dict[str, Any]]:
    """The same in the pieces of ``streamGenerateContent``: some words each, the finish reason last."""
    whole = build_response(reply, turn, response_id)
    parts = whole["candidates"][0]["content"]["parts"]
    pieces = [piece for part in parts for piece in _pieces(part)]
    for piece in pieces[:-1]:
        yield _envelope([piece], None, turn, response_id)
    yield _envelope(pieces[-1:], "STOP", turn, response_id)


def _pieces(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "text" not in part:
        yield part
        return
    words = part["text"].split(" ")
    for start in range(0, len(words), _STREAMED_WORDS):
        yield {"text": (" " if start else "") + " ".join(words[start : start + _STREAMED_WORDS])}


def _envelope(
    parts: list[dict[str, Any]],
    finish_reason: str | None,
    turn: Turn,
    response_id: str,
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish_reason is not None:
        candidate["finishReason"] = finish_reason
    asked, said = _tokens(turn.contents), _tokens(parts)
    return {
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": asked,
            "candidatesTokenCount": said,
            "totalTokenCount": asked + said,
        },
        "modelVersion": turn.model,
        "responseId": response_id,
    }


def _tokens(value: object) -> int:
    return len(json.dumps(value)) // _CHARACTERS_PER_TOKEN + 1


def build_error(status: int, message: str, retry_after_seconds: float | None = None) -> dict[str, Any]:
    """An error, with the delay that the API asks for in its details as well."""
    error: dict[str, Any] = {
        "code": status,
        "message": message,
        "status": _STATUS_NAMES.get(status, "UNKNOWN"),
    }
    if retry_after_seconds is not None:
        error["details"] = [
            {
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": f"{retry_after_seconds:g}s",
            }
        ]
    return {"error": error}
