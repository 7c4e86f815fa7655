"""What a failed model call means, whichever client made it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from google.genai.errors import APIError

from triage_agent.exceptions import AgentError
from triage_agent.redacting import redacted

# Google's canonical names (google.rpc.Code) and the HTTP statuses that stand for them.
_CODES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_CANONICAL_CODE: Final = re.compile(r"[A-Z]+(_[A-Z]+)*")

_SECONDS: Final = re.compile(r"\d{1,9}(\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailure:
    """Why a model did not answer."""

    code: str
    """A canonical code such as ``RESOURCE_EXHAUSTED``; ``UNKNOWN`` where nothing better is known."""
    status: int | None
    """HTTP status; None: no answer came, or one that is not HTTP's."""
    retry_after_seconds: float | None
    """How long the endpoint asked to be left alone; None: it did not say."""
    message: str
    """One line without secrets, at most 300 characters."""


def describe(error: BaseException) -> ModelFailure:
    """Describe an exception that a model raised.

    Known are google-genai's ``APIError`` (ADK's own error for 429 is one), what LiteLLM and the providers'
    clients raise (they have a ``status_code``), and the errors of the HTTP clients below them all.

    The message hides what looks like a key, and the values of environment variables that are named like one.
    """
    text = str(error)
    status: int | None = None
    retry_after_seconds: float | None = None
    if isinstance(error, AgentError):
        code = "FAILED_PRECONDITION"
    elif isinstance(error, APIError):
        status = error.code
        code = _code(status, error.status)
        retry_after_seconds = _retry_after_seconds(_headers(error), error.details)
        text = error.message or text
    elif isinstance(made_status := getattr(error, "status_code", None), int):
        headers = _headers(error)
        # LiteLLM makes a status up where no answer came: 408 for a timeout, 500 for a lost connection.
        status = made_status if headers else None
        code = "UNAVAILABLE" if made_status == 500 and not headers else _code(made_status)
        retry_after_seconds = _retry_after_seconds(headers)
    elif isinstance(error, TimeoutError) or (_from_client(error) and "Timeout" in type(error).__name__):
        code = "DEADLINE_EXCEEDED"
        text = text or "no answer in time"
    elif isinstance(error, OSError) or _from_client(error):
        code = "UNAVAILABLE"
    else:
        code = "UNKNOWN"
        text = f"{type(error).__name__}: {text}"
    return ModelFailure(
        code=code,
        status=status,
        retry_after_seconds=retry_after_seconds,
        message=redacted(text or type(error).__name__),
    )


def _code(status: int, said: str | None = None) -> str:
    # google-genai puts HTTP's reason phrase there when the body is not the API's.
    if said and _CANONICAL_CODE.fullmatch(said):
        return said
    return _CODES.get(status, "UNKNOWN")


def _from_client(error: BaseException) -> bool:
    """Whether an HTTP client raised it; google-genai uses aiohttp where that is installed, else httpx."""
    modules = {base.__module__.partition(".")[0] for base in type(error).__mro__}
    return not modules.isdisjoint(("aiohttp", "httpx", "httpx2"))


def _headers(error: BaseException) -> Mapping[str, str]:
    """Return the headers of the answer with lower-case names, none where there was no answer."""
    found: Mapping[str, str] | None = getattr(getattr(error, "response", None), "headers", None)
    # Where LiteLLM calls a provider itself it makes an empty response up, and keeps the real headers here.
    found = found or getattr(error, "litellm_response_headers", None)
    return {name.lower(): value for name, value in (found or {}).items()}


def _retry_after_seconds(headers: Mapping[str, str], details: object = None) -> float | None:
    """Read ``Retry-After`` (RFC 9110, section 10.2.3: seconds or a date), else Google's ``RetryInfo``."""
    value = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        # Both clocks are the endpoint's: ours may be off.
        asked = parsedate_to_datetime(value) - parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, asked.total_seconds())
    except (TypeError, ValueError):
        pass
    for detail in _error_details(details):
        delay = str(detail.get("retryDelay", "")).removesuffix("s")
        if _SECONDS.fullmatch(delay):
            return float(delay)
    return None


def _error_details(body: object) -> list[dict[str, Any]]:
    """Return ``error.details`` of the body of one of Google's errors."""
    error = body.get("error") if isinstance(body, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
