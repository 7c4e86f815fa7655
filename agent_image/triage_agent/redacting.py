"""Keeping secrets out of what is shown: messages, log lines, errors that a provider worded."""

import os
import re
from typing import Final

from triage_contract.texts import MASK, masked

MESSAGE_LENGTH: Final = 300

_SECRET_NAME: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SECRET_LENGTH: Final = 6
"""Below it a value is a placeholder, and hiding it would tear up the text."""


def without_secrets(text: str) -> str:
    """Hide what looks like a key, and the values of environment variables that are named like one."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= _SECRET_LENGTH:
            text = text.replace(value, MASK)
    return masked(text)


def redacted(text: str) -> str:
    """Give one line without secrets, of at most ``MESSAGE_LENGTH`` characters."""
    line = " ".join(without_secrets(text).split())
    return line if len(line) <= MESSAGE_LENGTH else f"{line[: MESSAGE_LENGTH - 1]}…"
