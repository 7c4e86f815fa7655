"""What went wrong inside a run, kept beside it: ADK wraps errors, and agents that run as tools swallow them."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from triage_agent.models.errors import ModelFailure, describe
from triage_contract.exceptions import TriageError


@dataclass(slots=True)
class Trouble:
    """The troubles of one run. ``error``: the first error of ours, after which nothing more is done or stored."""

    error: TriageError | None = None
    _model_errors: list[Exception] = field(default_factory=list)

    def note(self, error: TriageError) -> None:
        """Remember an error of ours."""
        if self.error is None:
            self.error = error

    def note_model(self, error: Exception) -> None:
        """Remember what a model raised; the agent may still make something of it."""
        self._model_errors.append(error)

    def check(self) -> None:
        """Raise the error of ours again, if there is one: whoever caught it must not go on."""
        if self.error is not None:
            raise self.error

    def error_behind(self, raised: BaseException | None) -> TriageError | None:
        """Find the error of ours that ended the run."""
        ours = (error for error in _chain(raised) if isinstance(error, TriageError))
        return self.error or next(ours, None)

    def model_failure_behind(self, raised: BaseException) -> ModelFailure | None:
        """Find the refusal of a model that ended the run; None: something else did."""
        found = next((error for error in _chain(raised) if error in self._model_errors), None)
        return None if found is None else describe(found)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and all that it was raised from; an error may stand in its own past."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        left += [None if one.__suppress_context__ else one.__context__, one.__cause__]
        if isinstance(one, BaseExceptionGroup):
            left += one.exceptions
