"""How an attempt's process ends: exit code, outcome, and one line for people."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from triage_agent.exceptions import ConfigurationError, InDoubtError
from triage_agent.models.errors import ModelFailure
from triage_contract.exceptions import (
    AlreadyClaimedError,
    DatabaseUnreachableError,
    FencedError,
    SchemaError,
    TriageError,
)
from triage_contract.states import ExitCode, Outcome

_EXIT_CODES: Final[Mapping[Outcome, ExitCode]] = {
    Outcome.FINISHED: ExitCode.FINISHED,
    Outcome.WAITING: ExitCode.WAITING,
    Outcome.HANDED_OFF: ExitCode.HANDED_OFF,
    Outcome.FAILED: ExitCode.FAILED,
    Outcome.MODEL_UNAVAILABLE: ExitCode.FAILED,
    Outcome.UNKNOWN_INVOCATION: ExitCode.UNKNOWN_INVOCATION,
    Outcome.IN_DOUBT: ExitCode.IN_DOUBT,
    Outcome.BAD_CONFIGURATION: ExitCode.BAD_CONFIGURATION,
}

_TRANSIENT_CODES: Final = frozenset(
    {"ABORTED", "DEADLINE_EXCEEDED", "INTERNAL", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of the process. ``outcome`` None: it has no attempt to end, and nothing of it was written."""

    exit_code: ExitCode
    outcome: Outcome | None
    message: str
    retry_after_seconds: float | None = None

    @classmethod
    def of(cls, outcome: Outcome, message: str, *, retry_after_seconds: float | None = None) -> "Ending":
        """End with an outcome of the attempt's own."""
        return cls(
            exit_code=_EXIT_CODES[outcome],
            outcome=outcome,
            message=message,
            retry_after_seconds=retry_after_seconds,
        )

    @classmethod
    def of_model_failure(cls, failure: ModelFailure) -> "Ending":
        """End because the model refused: for good, or because it is not to be had now."""
        transient = failure.code in _TRANSIENT_CODES or (failure.status or 0) >= 500
        answered = "did not answer" if failure.status is None else f"answered {failure.status}"
        return cls.of(
            Outcome.MODEL_UNAVAILABLE if transient else Outcome.FAILED,
            f"the model {answered}: {failure.code}: {failure.message}",
            retry_after_seconds=failure.retry_after_seconds,
        )

    @classmethod
    def of_error(cls, error: TriageError) -> "Ending":
        """End because of an error of ours."""
        match error:
            case FencedError() | AlreadyClaimedError():
                return cls(exit_code=ExitCode.FENCED, outcome=None, message=str(error))
            case DatabaseUnreachableError():
                return cls(exit_code=ExitCode.DATABASE_UNREACHABLE, outcome=None, message=str(error))
            case SchemaError() | ConfigurationError():
                return cls.of(Outcome.BAD_CONFIGURATION, str(error))
            case InDoubtError():
                return cls.of(Outcome.IN_DOUBT, str(error))
            case _:
                return cls.of(Outcome.FAILED, str(error))
