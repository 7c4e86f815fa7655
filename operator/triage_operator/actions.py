"""What a decision can be: a closed union. Applying matches it exhaustively."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from triage_contract.states import Cause, DecisionAction, Outcome, Phase, RunState
from triage_operator.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What every action says of itself: one value for the condition, the Event, the metric and the log line."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait(Stated):
    """Change nothing; show ``phase``. ``until`` is when to look again without a wake-up; None: only when woken."""

    phase: Phase
    until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAttempt(Stated):
    """Record the next attempt with its fence, then make its pod.

    ``observed_epoch`` 0: the session has no fence yet. ``memory_limit_bytes`` None: no limit.
    """

    observed_epoch: int
    memory_limit_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod(Stated):
    """Make the pod of the recorded attempt, or adopt it where it stands already.

    ``next_name``: another's pod has the name that the row holds; take the next one, recorded first.
    """

    serial: int
    next_name: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt(Stated):
    """Close the fence of the open attempt, then record its end. The verdict is read only after that.

    ``cause`` None: it was not lost (it finished, waits, or was ended on purpose), or with ``Outcome.LOST``
    not known yet. ``counted``: against the no-progress budget. ``exit_code`` None: no container was seen
    terminated. ``confirmed``: its process is known to be dead, not only presumed. The message becomes the
    row's ``error`` where the attempt left none itself.
    """

    serial: int
    epoch: int
    outcome: Outcome
    cause: Cause | None
    counted: bool
    exit_code: int | None
    confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FillCause(Stated):
    """Correct the recorded cause of an ended attempt by what its pod says since.

    Nothing else about the run changes: no status, no Event. In the metrics a loss counts once, under its
    first cause that is not None.
    """

    serial: int
    epoch: int
    cause: Cause
    counted: bool
    exit_code: int | None
    confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmDeath(Stated):
    """Record that the process of an ended attempt, presumed dead so far, is known to be.

    Like a cause that is filled in, it changes nothing that is shown; calls in doubt are judged again by it.
    """

    serial: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CarryOutDecision(Stated):
    """Do with a call in doubt what a person decided: it is done, with this result, or may run again.

    ``call`` is its key in the journal, ``epoch`` that of the attempt that began it.
    """

    call: str
    epoch: int
    decided: DecisionAction
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHandoff(Stated):
    """Ask the open attempt to release its fence at its next boundary. ``cause`` becomes the row's
    ``handoff_reason``.

    ``max_unavailable``: for a rollout, only while fewer of the agent's other runs are between two attempts for it;
    None: in any case.
    """

    serial: int
    cause: Cause
    max_unavailable: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseMemory(Stated):
    """Ask for a memory limit for the open attempt's running pod."""

    serial: int
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePod(Stated):
    """Delete a pod that nobody needs any more, by name and UID."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRun(Stated):
    """Record the end of the run, its row too where it has none yet; its fence stays null for good.

    ``output`` is the final text, None: none.
    """

    state: RunState
    output: str | None

    @property
    def recorded(self) -> str:
        """What becomes the row's ``reason``, so that a lost status loses neither reason nor message."""
        return f"{self.reason}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRun(Stated):
    """Delete the TriageRun object: its time to live after its end is over."""


Action = (
    Wait
    | OpenAttempt
    | CreatePod
    | EndAttempt
    | FillCause
    | ConfirmDeath
    | CarryOutDecision
    | RequestHandoff
    | RaiseMemory
    | DeletePod
    | EndRun
    | DeleteRun
)
