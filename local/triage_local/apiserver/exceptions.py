"""What a request can be refused with. Each refusal is the ``Status`` object that the client receives.

Codes, reasons and wording follow k8s.io/apimachinery/pkg/api/errors: clients tell refusals apart by them.
"""

from collections.abc import Sequence
from typing import ClassVar

from triage_local.apiserver.field_errors import FieldError, quoted
from triage_local.apiserver.objects import Json


class ApiError(Exception):
    """Base of all refusals.

    ``message`` is for people, ``details`` and ``retry_after_seconds`` for programs (and a header).
    """

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self, message: str, *, details: Json | None = None, retry_after_seconds: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details or {}
        self.retry_after_seconds = retry_after_seconds

    def status(self) -> Json:
        """The ``Status`` body of the answer."""
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retryAfterSeconds"] = self.retry_after_seconds
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return {**body, "details": details} if details else body


class BadRequestError(ApiError):
    """The request makes no sense: no JSON, a wrong selector, a name that differs from the URL's."""

    code = 400
    reason = "BadRequest"


class ForbiddenError(ApiError):
    """The request is understood and not allowed, such as a write into a namespace that is being deleted."""

    code = 403
    reason = "Forbidden"


class NotFoundError(ApiError):
    """No such object, resource or path."""

    code = 404
    reason = "NotFound"


class MethodNotAllowedError(ApiError):
    """The resource is there and does not support this verb."""

    code = 405
    reason = "MethodNotAllowed"


class AlreadyExistsError(ApiError):
    """A create under a name that is taken."""

    code = 409
    reason = "AlreadyExists"


class ConflictError(ApiError):
    """A resource version, UID or field manager in the request does not hold."""

    code = 409
    reason = "Conflict"


class ExpiredError(ApiError):
    """The resource version or continue token is older than the history that is kept."""

    code = 410
    reason = "Expired"


class ExpiredPageError(ExpiredError):
    """A list cannot go on in the state of its first page."""

    def __init__(self, token: str) -> None:
        """Take the token with which it goes on in the state of now."""
        super().__init__(
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter, or use the continue token in this response "
            "to retrieve the remainder of the results. Continuing with the provided token results in an "
            "inconsistent list - objects that were created, modified, or deleted between the time the first chunk "
            "was returned and now may show up in the list."
        )
        self._token = token

    def status(self) -> Json:
        """The answer, with the token in it."""
        return {**super().status(), "metadata": {"continue": self._token}}


class TooLargeError(ApiError):
    """The body exceeds what the API server reads."""

    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaTypeError(ApiError):
    """The body's content type is not one that the resource accepts."""

    code = 415
    reason = "UnsupportedMediaType"


class InvalidError(ApiError):
    """The object breaks its schema or a rule."""

    code = 422
    reason = "Invalid"


class TooManyRequestsError(ApiError):
    """Try again later."""

    code = 429
    reason = "TooManyRequests"


class InternalError(ApiError):
    """The server failed."""


class UnavailableError(ApiError):
    """The server cannot answer now."""

    code = 503
    reason = "ServiceUnavailable"


class TimedOutError(ApiError):
    """The server did not answer in time."""

    code = 504
    reason = "Timeout"


def qualified(group: str, plural: str) -> str:
    """``plural.group``, or ``plural`` in the core group, as messages name a resource."""
    return f"{plural}.{group}" if group else plural


def not_found(group: str, plural: str, name: str) -> NotFoundError:
    """The refusal for an object that is not there."""
    details = {"name": name, "group": group, "kind": plural}
    return NotFoundError(
        f"{qualified(group, plural)} {quoted(name)} not found",
        details={k: v for k, v in details.items() if v},
    )


def already_exists(group: str, plural: str, name: str) -> AlreadyExistsError:
    """The refusal for a create under a taken name."""
    details = {"name": name, "group": group, "kind": plural}
    return AlreadyExistsError(
        f"{qualified(group, plural)} {quoted(name)} already exists",
        details={k: v for k, v in details.items() if v},
    )


def conflict(group: str, plural: str, name: str, why: str) -> ConflictError:
    """The refusal for a write whose precondition does not hold; ``why`` ends the sentence."""
    details = {"name": name, "group": group, "kind": plural}
    return ConflictError(
        f"Operation cannot be fulfilled on {qualified(group, plural)} {quoted(name)}: {why}",
        details={k: v for k, v in details.items() if v},
    )


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> InvalidError:
    """The refusal for an object with wrong fields, each of them as a cause."""
    texts = [str(error) for error in errors]
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Json = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [error.cause() for error in errors]
    kind_name = f"{kind}.{group}" if group else kind
    return InvalidError(f"{kind_name} {quoted(name)} is invalid: {listed}", details=details)
