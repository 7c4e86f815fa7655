"""What makes two requests to a model the same, from one run to another."""

import hashlib
import json
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.genai.types import Content, Part


def request_digest(request: LlmRequest) -> str:
    """Return a digest of what the model was told and said: instruction, tool names, texts, its own calls.

    Left out is what differs between two runs that go the same way: call ids, and what the tools returned
    (the number of a new issue, say). So a recording of one run answers the next one.
    """
    tools = [
        declaration.name
        for tool in request.config.tools or []
        for declaration in getattr(tool, "function_declarations", None) or []
    ]
    material = {
        "instruction": str(request.config.system_instruction),
        "tools": sorted(name for name in tools if name),
        "contents": [_content(content) for content in request.contents],
    }
    canonical = json.dumps(material, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _content(content: Content) -> dict[str, Any]:
    return {"role": content.role, "parts": [_part(part) for part in content.parts or []]}


def _part(part: Part) -> dict[str, Any]:
    if part.function_response:
        return {"response_of": part.function_response.name}
    if part.function_call:
        return {"call": part.function_call.name, "args": part.function_call.args}
    return part.model_dump(mode="json", exclude_none=True, exclude={"thought_signature"})
