"""Faults on demand: what goes wrong between an API server and its clients, when a test asks for it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from triage_local.apiserver import exceptions
from triage_local.apiserver.exceptions import ApiError
from triage_local.apiserver.store import Store
from triage_local.apiserver.watching import Fault, Watch, Watches

_REFUSALS: Final[dict[int, type[ApiError]]] = {
    error.code: error
    for error in (
        exceptions.ForbiddenError,
        exceptions.NotFoundError,
        exceptions.ConflictError,
        exceptions.ExpiredError,
        exceptions.TooManyRequestsError,
        exceptions.ApiError,
        exceptions.UnavailableError,
        exceptions.TimedOutError,
    )
}


@dataclass(slots=True, kw_only=True)
class Answer:
    """What the next ``left`` requests that match get: a delay, a refusal, or one after the other.

    ``method`` and ``target`` are regular expressions, searched in the method and in path and query. ``status``
    None: no refusal, else ``message`` are its words. ``applied``: the request takes effect before the delay, and
    only its answer is late, or lost in the refusal; not for watches. ValueError: no such refusal, no such
    expression, or none left.
    """

    method: str = ""
    target: str = ""
    status: int | None = None
    message: str = "fault on demand"
    left: int = 1
    retry_after_seconds: int | None = None
    delay_seconds: float = 0.0
    applied: bool = False

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in _REFUSALS:
            raise ValueError(f"status {self.status} is none of {sorted(_REFUSALS)}")
        if self.left < 1:
            raise ValueError("left must be at least 1")
        for expression in (self.method, self.target):
            try:
                re.compile(expression)
            except re.error as error:
                raise ValueError(f"no regular expression: {expression!r}: {error}") from error

    def matches(self, method: str, target: str) -> bool:
        """Whether a request gets this answer."""
        return bool(re.search(self.method, method) and re.search(self.target, target))

    def refusal(self) -> ApiError | None:
        """The error to answer with; None: none."""
        if self.status is None:
            return None
        return _REFUSALS[self.status](self.message, retry_after_seconds=self.retry_after_seconds)


class Faults:
    """The faults of one server.

    What befalls watches befalls those that are open now, and each method says how many those were; ``target``
    is a regular expression, searched in their path and query.
    """

    def __init__(self, store: Store, watches: Watches) -> None:
        self._store = store
        self._watches = watches
        self._answers: list[Answer] = []

    def answer(self, answer: Answer) -> None:
        """Give the next matching requests this answer. Of several that match, the first is used up first."""
        self._answers.append(answer)

    def next_answer(self, method: str, target: str) -> Answer | None:
        """The answer that a request gets, which is used up by that; None: the ordinary one."""
        for answer in self._answers:
            if answer.matches(method, target):
                answer.left -= 1
                if answer.left == 0:
                    self._answers.remove(answer)
                return answer
        return None

    def drop_watches(self, target: str = "") -> int:
        """Break their connections."""
        return self._befall(target, Fault.CUT)

    def freeze_watches(self, target: str = "") -> int:
        """Leave them half-open: nothing is sent any more, and the connection stays."""
        return self._befall(target, Fault.FREEZE)

    def truncate_watches(self, target: str = "") -> int:
        """End them in the middle of the line of their next event."""
        return self._befall(target, Fault.TRUNCATE)

    def fail_watches(self, status: int, target: str = "") -> int:
        """End them with an ERROR event of this status."""
        refusal = Answer(status=status).refusal()
        assert refusal is not None
        return self._befall(target, refusal)

    def _befall(self, target: str, fault: Fault | ApiError) -> int:
        struck = list(self._matching(target))
        for watch in struck:
            watch.push(fault)
        return len(struck)

    def _matching(self, target: str) -> Iterator[Watch]:
        return (watch for watch in self._watches if re.search(target, watch.request.target))

    def lose_deleted(self, plural: str, count: int) -> None:
        """Let no watch ever see the next ``count`` deletions of this resource."""
        self._watches.deleted_to_lose[plural] += count

    def expire(self) -> None:
        """Forget the history: what goes on from an earlier version gets 410."""
        self._store.forget()

    def clear(self) -> None:
        """Take back what has not happened yet. What befell a watch stays."""
        self._answers.clear()
        self._watches.deleted_to_lose.clear()
