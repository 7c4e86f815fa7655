"""What went wrong inside a run, kept beside it: ADK wraps errors, and agents that run as tools swallow them."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from triage_agent.models.errors import ModelFailure, describe
from triage_agent.replay.gate import INSIDE_CALL
from triage_contract.exceptions import FencedError, TriageError


@dataclass(slots=True)
class Trouble:
    """The troubles of one run, and the calls that are to end before it does.

    ``error``: the first error of ours, after which no step begins and no event is stored.
    """

    error: TriageError | None = None
    _model_errors: list[Exception] = field(default_factory=list)
    _running: dict[str, str] = field(default_factory=dict)
    """The calls under way by key, each with the key of the one that it is inside of; empty: none."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

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

    def begin(self, key: str, *, outer: str) -> None:
        """Note that a call begins, inside the call ``outer``; empty: inside none."""
        self._running[key] = outer

    def end(self, key: str) -> None:
        """Note that a call has ended, and that its end is journaled, or never will be."""
        self._running.pop(key, None)
        self._changed.set()

    def is_running(self, key: str) -> bool:
        """Whether a call is under way, and no error of ours has come up inside it."""
        return key in self._running

    async def calm(self) -> None:
        """Wait until no call is under way that can still have a result, unless nobody could store that.

        ADK cancels everything beside a step that raises: a call in the middle of its effect, too.
        """
        key = INSIDE_CALL.get()
        while key:  # What waits for the current step gets no result any more.
            outer = self._running.get(key, "")
            self.end(key)
            key = outer
        while self._running and not isinstance(self.error, FencedError):
            self._changed.clear()
            await self._changed.wait()

    async def halt(self) -> None:
        """End the current step if there is an error of ours, once the calls beside it have ended.

        Raises:
            TriageError: the error.
        """
        if self.error is not None:
            await self.calm()
            raise self.error

    def is_behind(self, raised: BaseException) -> bool:
        """Whether the error of ours is what something raised, or was raised from."""
        return self.error is not None and any(it is self.error for it in chain(raised))

    def error_behind(self, raised: BaseException | None) -> TriageError | None:
        """Find the error of ours that ended the run."""
        ours = (error for error in chain(raised) if isinstance(error, TriageError))
        return self.error or next(ours, None)

    def model_failure_behind(self, raised: BaseException) -> ModelFailure | None:
        """Find the refusal of a model that ended the run; None: something else did."""
        found = next((error for error in chain(raised) if error in self._model_errors), None)
        return None if found is None else describe(found)


def chain(error: BaseException | None) -> Iterator[BaseException]:
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
