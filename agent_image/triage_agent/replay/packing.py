"""Results of tools as the journal keeps them, and as ADK takes them back.

A tool may return media among its data, as parts of a content; ADK moves them from the result to beside it
(google-adk 2.13.0, ``flows/llm_flows/tools/_caller.py``), and does so again with what is unpacked here.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from google.adk.flows.llm_flows.tools._caller import _extract_multimodal_parts
from google.genai import types
from pydantic import TypeAdapter

_MEDIA: Final = "triage_media"
"""Key of the media in a packed result."""

_PARTS: Final = TypeAdapter(list[types.FunctionResponsePart])


def packed(result: Any, *, is_deferred: bool) -> dict[str, Any]:
    """Give a result as an object; ``is_deferred``: the answer may come later, so that nothing is no answer."""
    if is_deferred and not result:
        return {}
    rest, media = _extract_multimodal_parts(result)
    kept = rest if isinstance(rest, dict) else {"result": rest}
    return (
        kept if media is None else {**kept, _MEDIA: _PARTS.dump_python(media, mode="json", exclude_none=True)}
    )


def unpacked(result: Mapping[str, Any]) -> dict[str, Any]:
    """Give a packed result as if the tool had returned it."""
    if _MEDIA not in result:
        return dict(result)
    # The fields of both kinds of parts have the same names.
    return {**result, _MEDIA: [types.Part.model_validate_json(json.dumps(it)) for it in result[_MEDIA]]}
