"""The termination message of an agent container: a hint for the operator and for people, never the authority."""

import json
from dataclasses import dataclass
from typing import Final, Self

from triage_contract.states import Outcome

MAX_BYTES: Final = 4096
"""The kubelet cuts a termination message here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationMessage:
    """How the process says that it ended. Written by the agent as one JSON line, read by the operator.

    ``outcome`` None: the process had no attempt to end (fenced, claimed by another, no database).
    """

    outcome: Outcome | None
    message: str

    def to_json(self) -> str:
        """Give one line of at most ``MAX_BYTES`` bytes."""
        message = self.message
        while True:
            line = json.dumps({"outcome": self.outcome, "message": message}, ensure_ascii=True)
            if len(line) <= MAX_BYTES:
                return line
            message = message[: len(message) * 3 // 4]

    @classmethod
    def from_json(cls, line: str) -> Self | None:
        """Read a line; None: it is not one of ours."""
        try:
            fields = json.loads(line)
            outcome = fields["outcome"]
            return cls(outcome=None if outcome is None else Outcome(outcome), message=str(fields["message"]))
        except (ValueError, KeyError, TypeError):
            return None
