"""How a run stands, as its object says it: for the metrics."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from triage_contract.api import RunCondition
from triage_contract.api.run import AgentRef
from triage_contract.states import Phase
from triage_operator.kube import Object

OVER: Final = frozenset(phase for phase in Phase if phase.terminal)
"""Phases of runs that have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A run's phase, what it does or waits for, and the calls that are in doubt.

    ``phase`` is the empty text where no status was written yet. ``reason`` is that of the condition Progressing, and
    ``since`` when that became true or false. ``doubted_since`` has the beginning of each call in doubt.
    """

    namespace: str
    agent: str
    phase: str
    reason: str = ""
    since: datetime | None = None
    doubted_since: tuple[datetime, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.phase in OVER

    @classmethod
    def of(cls, run: Object) -> "Standing":
        """Read a run's object, whatever stands in its status."""
        status: dict[str, Any] = run.get("status") or {}
        progressing: dict[str, Any] = next(
            (one for one in status.get("conditions", ()) if one.get("type") == RunCondition.PROGRESSING), {}
        )
        return cls(
            namespace=run["metadata"]["namespace"],
            agent=((run.get("spec") or {}).get("agentRef") or {}).get("name", AgentRef().name),
            phase=status.get("phase") or "",
            reason=progressing.get("reason", ""),
            since=_time(progressing.get("lastTransitionTime")),
            doubted_since=tuple(
                since
                for call in status.get("waitingFor") or ()
                if call.get("attempt") is not None and (since := _time(call.get("since"))) is not None
            ),
        )


def _time(written: str | None) -> datetime | None:
    return None if written is None else datetime.fromisoformat(written)
