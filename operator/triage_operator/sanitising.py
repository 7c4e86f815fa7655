"""Texts from outside as they may be stored and shown: without what Postgres refuses, and without secrets."""

import re
from collections.abc import Mapping
from typing import Any, Final

MASK: Final = "***"

_SECRETS: Final = (
    # Users and passwords in URLs, and keys as providers write them.
    re.compile(r"(?<=://)[^/\s@\"]+(?=@)"),
    re.compile(r"(?<=[?&]key=)[^&\s'\"]+"),
    re.compile(r"(?<=Bearer )[^\s\"]+", re.IGNORECASE),
    re.compile(r"\b(AIza|sk-|ghp_|github_pat_)[\w*-]+"),
    # Members of a JSON object that are named like one, also where the text is cut in the middle.
    re.compile(
        r'(?<=")(?P<name>[^"]*(?:api_?key|token|secret|password|authorization|credential)[^"]*"\s*:\s*)'
        r'"(?:[^"\\]|\\.)*"?',
        re.IGNORECASE,
    ),
)


def masked(text: str) -> str:
    """Mask what looks like a credential in a text or in JSON."""
    *plain, members = _SECRETS
    for pattern in plain:
        text = pattern.sub(MASK, text)
    return members.sub(rf'\g<name>"{MASK}"', text)


def storable(value: Any) -> Any:
    """Give JSON as Postgres takes it: it knows neither NUL nor half of a surrogate pair."""
    if isinstance(value, str):
        text = value.replace("\x00", "\ufffd")
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
