"""Calls in doubt: begun, and nobody knows whether they happened. What is to be done about each.

| kind | in doubt |
|---|---|
| `ReadOnly`, `Idempotent` | run it again, at once |
| `Reconcile` | ask its outside world |
| undeclared | what the agent's ``resume.inDoubt`` says |

What the outside world saw happen becomes the call's result. What it did not see runs again once the old process is
known to be dead; until then, and where the outside world does not know, a person decides.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from triage_contract.states import CallState, Doubt, InDoubt, ToolKind
from triage_contract.verdict.facts import CallFacts

REPEATABLE: Final = frozenset({ToolKind.READ_ONLY, ToolKind.IDEMPOTENT})
"""Kinds whose calls simply run again, under the same key."""


class Remedy(StrEnum):
    """What is to be done about a call in doubt."""

    RUN_AGAIN = "run_again"
    ASK = "ask"
    PARK = "park"
    FAIL = "fail"


_BY_POLICY: Final = {
    InDoubt.PARK: Remedy.PARK,
    InDoubt.RETRY: Remedy.RUN_AGAIN,
    InDoubt.FAIL: Remedy.FAIL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoubtfulCall:
    """A call in doubt that does not simply run again, and what is to be done about it: never ``RUN_AGAIN``.

    ``key`` names its row in the journal, ``id`` is ADK's, ``epoch`` that of the attempt which began it.
    """

    key: str
    id: str
    name: str
    epoch: int
    remedy: Remedy


def remedy_for(row: CallFacts, in_doubt: InDoubt) -> Remedy | None:
    """Say what is to be done about a journaled call; None: it is not in doubt."""
    if row.state not in (CallState.BEGUN, None):
        return None
    if row.state is None:
        return Remedy.PARK
    if row.cleared or row.kind in REPEATABLE:
        return Remedy.RUN_AGAIN
    match row.kind:
        case ToolKind.RECONCILE:
            # Who was asked while the old process may still have lived is asked again once it is dead.
            news = row.doubt in (None, Doubt.RAISED) or (row.confirmed and not row.asked_confirmed)
            return Remedy.ASK if news else Remedy.PARK
        case ToolKind.UNDECLARED:
            return _BY_POLICY[in_doubt]
        case _:
            return Remedy.PARK
