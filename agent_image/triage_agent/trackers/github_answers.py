"""What GitHub's answers say beside their content.

https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final

import httpx

SECONDARY_LIMIT_SECONDS: Final = 60.0
"""What GitHub wants to be waited for where a rate limit does not say how long."""


def patience_asked(answer: httpx.Response) -> float | None:
    """Give the seconds for which GitHub wants no request; None: this is no rate limit."""
    if answer.status_code not in (httpx.codes.FORBIDDEN, httpx.codes.TOO_MANY_REQUESTS):
        return None
    after, reset = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-reset", "")
    if after.isdecimal():
        return float(after)
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return float(reset) - _clock_of(answer) + 1.0
    is_limit = answer.status_code == httpx.codes.TOO_MANY_REQUESTS or "rate limit" in message_of(answer)
    return SECONDARY_LIMIT_SECONDS if is_limit else None


def _clock_of(answer: httpx.Response) -> float:
    """Give the time by the clock that set ``x-ratelimit-reset``: ours may be wrong."""
    with suppress(ValueError):
        return parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    return time.time()


def message_of(answer: httpx.Response) -> str:
    """Give GitHub's words for a refusal, or the status's own where there are none."""
    try:
        content = answer.json()
    except ValueError:
        content = None
    match content:
        case {"message": str(message), "errors": [*errors]}:
            return ", ".join([message, *map(_problem, errors)])
        case {"message": str(message)}:
            return message
        case _:
            return answer.reason_phrase


def _problem(error: object) -> str:
    if not isinstance(error, Mapping):
        return str(error)
    return str(error.get("message") or f"{error.get('field')} {error.get('code')}")
