"""What a pod says about its attempt: pending, running, on its way out, or ended, and why. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from triage_contract.states import Cause
from triage_contract.termination import TerminationMessage
from triage_contract.texts import masked
from triage_operator.diagnosing.facts import PodFacts, read_facts
from triage_operator.diagnosing.table import ROWS
from triage_operator.reasons import Reason

MESSAGE_LENGTH: Final = 500
"""Characters of what a container or a kubelet says that are passed on."""


class PodState(StrEnum):
    """Where a pod's agent container is. Sidecars and init containers do not matter."""

    PENDING = "pending"
    RUNNING = "running"
    LEAVING = "leaving"
    """It runs, and the pod's deletion was asked for."""
    ENDED = "ended"
    """It ended, or will never start, or the control plane took the pod for dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What a pod says about its attempt.

    ``cause`` is why it ended or leaves; None: it does neither, or the database says more than the pod can.
    ``confirmed``: a kubelet saw the container's own end, so that its process is not only presumed dead.
    ``held_up`` says what a pending pod waits for, if it is more than a moment. ``since``: when a pending pod got
    its node, or the container started. ``ends_at``: when the grace period of a deletion is over. ``message`` is
    a sentence.
    """

    state: PodState
    cause: Cause | None
    exit_code: int | None
    confirmed: bool
    held_up: Reason | None
    since: datetime | None
    ends_at: datetime | None
    message: str


def diagnose(pod: Mapping[str, Any]) -> Diagnosis:
    """Diagnose a pod that the API server has, as JSON."""
    facts = read_facts(pod)
    state = _state(facts)
    return Diagnosis(
        state=state,
        cause=_cause(facts) if state in (PodState.LEAVING, PodState.ENDED) else None,
        exit_code=facts.exit_code,
        confirmed=facts.exit_code is not None and not facts.status_made_up,
        held_up=_held_up(facts) if state is PodState.PENDING else None,
        since=facts.scheduled_at if state is PodState.PENDING else facts.started_at,
        ends_at=facts.deleted_at,
        message=_message(facts, state),
    )


def cause_of_absence(last: Mapping[str, Any]) -> Cause | None:
    """Tell why a pod is gone from the last that was seen of it; None: that did not show it."""
    facts = read_facts(last)
    if _state(facts) is PodState.PENDING:
        return Cause.DELETED_PENDING
    return _cause(facts)


def _state(facts: PodFacts) -> PodState:
    if facts.exit_code is not None or facts.phase in ("Failed", "Succeeded"):
        return PodState.ENDED
    if facts.deleted_at is not None:
        # A kubelet starts no container of a pod that is to be deleted.
        return PodState.LEAVING if facts.running else PodState.ENDED
    return PodState.RUNNING if facts.running else PodState.PENDING


def _cause(facts: PodFacts) -> Cause | None:
    return next((row.cause for row in ROWS if row.sees(facts)), None)


def _held_up(facts: PodFacts) -> Reason | None:
    if facts.start_blocked:
        return Reason.START_BLOCKED
    return Reason.UNSCHEDULABLE if facts.unschedulable is not None else None


_KILLED: Final = 128
"""Exit codes above this are a signal's number and this."""


def _message(facts: PodFacts, state: PodState) -> str:
    if facts.exit_code is not None:
        named = f" ({facts.end_reason})" if facts.end_reason not in (None, "Error", "Completed") else ""
        said = f"the agent container ended with exit code {facts.exit_code}{named}"
        return _sentence(said, _last_words(facts.end_message, killed=facts.exit_code > _KILLED))
    match state:
        case PodState.ENDED if facts.init_failure is not None:
            return _sentence(facts.init_failure, None)
        case PodState.ENDED if facts.deleted_at is not None and facts.reason is None:
            return "The pod was deleted before its agent container started."
        case PodState.ENDED:
            return _sentence(f"the pod is {facts.phase}: {facts.reason or 'no reason given'}", facts.message)
        case PodState.LEAVING:
            return _sentence(f"the pod is being deleted: {facts.disruption or 'by request'}", None)
        case PodState.RUNNING:
            return "The agent container runs."
        case PodState.PENDING if facts.unschedulable is not None:
            return _sentence("the pod has no node", facts.unschedulable)
    return _sentence(f"the agent container waits: {facts.wait_reason or 'Scheduled'}", facts.wait_message)


def _last_words(text: str | None, *, killed: bool) -> str | None:
    """Read a termination message: one of ours, or the end of a log, whose last line says the most.

    The log of a killed process does not know of its end.
    """
    ours = TerminationMessage.from_json((text or "").strip())
    if ours is not None:
        return ours.message
    lines = [] if text is None or killed else text.strip().splitlines()
    return _logged(lines[-1]) if lines else None


def _logged(line: str) -> str:
    """Give what a log line says, whether it is a JSON object or plain text."""
    try:
        record = json.loads(line)
        return str(record["message"])
    except (ValueError, KeyError, TypeError):
        return line


def _sentence(said: str, more: str | None) -> str:
    text = masked(" ".join(f"{said}: {more}".split() if more else said.split()))
    text = text if len(text) <= MESSAGE_LENGTH else f"{text[: MESSAGE_LENGTH - 1]}…"
    return f"{text[0].upper()}{text[1:]}" + ("" if text[-1] in ".!?…" else ".")
