"""Errors of the operator. None of their messages holds a secret."""

from triage_contract.exceptions import TriageError


class OperatorError(TriageError):
    """Base of the operator's own errors."""


class PodTemplateError(OperatorError):
    """A TriageAgent's ``podTemplate`` that cannot be merged; the message names the field."""


class TenantError(OperatorError):
    """A tenant that cannot be made, removed or listed; the message has the database's own words."""


class TornSnapshotError(OperatorError):
    """What was read first had changed before all was read. Observe again."""


class PlaceTakenError(OperatorError):
    """Other runs have taken the last place of a rollout. Observe again."""


class KubeError(OperatorError):
    """The API server did not do what it was asked; the message has its own words."""


class KubeConfigError(KubeError):
    """No way to the API server is configured, or one that cannot be read."""


class KubeUnavailableError(KubeError):
    """The API server did not answer, or is overloaded: the same request may succeed later.

    ``retry_after_seconds`` is what the server asked for; None: nothing.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class KubeConflictError(KubeError):
    """HTTP 409: the object exists already, or has changed since it was read. Observe again."""


class KubeExpiredError(KubeError):
    """HTTP 410: the rest of a list is no longer to be had. Begin the list again."""


class KubeRefusedError(KubeError):
    """The API server understood and refused: forbidden, over quota, invalid.

    Asking again changes nothing by itself.
    """
