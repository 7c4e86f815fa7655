"""The attempt that the current code works on, for tools that can write in the journal's own transaction."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAttempt:
    """What a definer function of the database wants to see. ``token`` is a secret."""

    serial: int
    token: str = field(repr=False)


CURRENT_ATTEMPT: Final[ContextVar[CurrentAttempt | None]] = ContextVar("triage_current_attempt", default=None)
"""Set by the attempt before anything of the user's runs; None: there is no attempt, and so no journal.

``triage_agent.replay.gate.INSIDE_CALL`` is the key of the call within it.
"""
