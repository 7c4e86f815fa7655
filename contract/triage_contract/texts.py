"""Texts from outside as they may be stored and shown: without what Postgres refuses, and without secrets."""

import re
from typing import Final

MASK: Final = "***"
"""What stands in place of a credential."""

# jsonb refuses NUL (PostgreSQL documentation, 8.14), UTF-8 lone surrogates.
_UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")

# Users and passwords in URLs, and keys as providers write them.
_SECRETS: Final = (
    re.compile(r"(?<=://)[^/\s@\"]+(?=@)"),
    re.compile(r"(?<=[?&]key=)[^&\s'\"]+"),
    re.compile(r"(?<=Bearer )[^\s\"]+", re.IGNORECASE),
    re.compile(r"\b(AIza|sk-|ghp_|github_pat_)[\w*-]+"),
)

# Members of a JSON object that are named like one, also where the text is cut in the middle.
_SECRET_MEMBERS: Final = re.compile(
    r'(?<=")(?P<name>[^"]*(?:api_?key|token|secret|password|authorization|credential)[^"]*"\s*:\s*)'
    r'"(?:[^"\\]|\\.)*"?',
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """Mask what looks like a credential in a text or in JSON, which stays JSON."""
    for pattern in _SECRETS:
        text = pattern.sub(MASK, text)
    return _SECRET_MEMBERS.sub(rf'\g<name>"{MASK}"', text)


def storable_text(text: str) -> str:
    """Put U+FFFD in place of each NUL and lone surrogate, which Postgres does not take."""
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", text)
