"""The status of a run: what a snapshot and the action that it led to show. Pure, and equal for equal input.

Everything comes from the database and the action; of the status that stands only the times of unchanged
conditions are kept.
"""

from typing import Final

from triage_contract.api import (
    AttemptStatus,
    Condition,
    RunCondition,
    RunStatus,
    ToolCallCounts,
)
from triage_contract.api.run import ATTEMPTS_KEPT
from triage_contract.database.rows import AttemptRow
from triage_contract.quantities import format_memory
from triage_contract.states import Phase, RunState, Verdict
from triage_operator.actions import Action, EndRun, Wait
from triage_operator.budgeting import no_progress
from triage_operator.conditions import build_condition
from triage_operator.phases import PHASES
from triage_operator.reasons import Reason
from triage_operator.snapshot import Snapshot
from triage_operator.waiting_calls import waiting_calls

HELD_UP: Final = frozenset(
    {
        Reason.SUSPENDED,
        Reason.INPUT_REQUIRED,
        Reason.IN_DOUBT,
        Reason.START_BLOCKED,
        Reason.UNSCHEDULABLE,
        Reason.UNKNOWN_AGENT,
        Reason.BAD_AGENT,
        Reason.POD_REFUSED,
        Reason.DATABASE_UNREACHABLE,
        Reason.DATABASE_BEHIND,
    }
)
"""Reasons for which somebody or something has to come to a run's help."""


def build_status(snapshot: Snapshot, action: Action) -> RunStatus | None:
    """Build the status to write. None: another action follows at once, and the run's next rest is what is shown."""
    if isinstance(action, EndRun):
        phase, output = PHASES[action.state], action.output
    elif isinstance(action, Wait):
        phase, output = action.phase, _output(snapshot)
    else:
        return None
    if action.reason is Reason.DATABASE_BEHIND:
        # What was shown before is all that tells of the newer database.
        if phase.terminal:
            return snapshot.run.status
        return snapshot.run.status.model_copy(
            update={
                "phase": phase,
                "conditions": _conditions(snapshot, action, phase),
                "observed_generation": snapshot.run.metadata.generation,
            }
        )
    row, attempts = snapshot.row, snapshot.attempts
    return RunStatus(
        phase=phase,
        conditions=_conditions(snapshot, action, phase),
        observed_generation=snapshot.run.metadata.generation,
        session=None if row is None else row.session.session_id,
        invocation_id=None if row is None else row.invocation_id,
        attempt=None if snapshot.newest is None else snapshot.newest.epoch,
        attempts=tuple(_attempt(attempt) for attempt in attempts[-ATTEMPTS_KEPT:]),
        resumes=_resumes(snapshot),
        no_progress=no_progress(attempts),
        tool_calls=ToolCallCounts(
            begun=snapshot.calls.begun,
            done=snapshot.calls.done,
            suppressed=snapshot.calls.suppressed_by_journal + snapshot.calls.suppressed_by_tracker,
        ),
        waiting_for=waiting_calls(snapshot) if phase is Phase.WAITING else (),
        last_cause=next((attempt.cause for attempt in reversed(attempts) if attempt.cause), None),
        recovery_seconds=_recovery_seconds(snapshot),
        issue=snapshot.issue,
        output=output,
    )


def _output(snapshot: Snapshot) -> str | None:
    row, judgement = snapshot.row, snapshot.judgement
    if row is None or row.state is not RunState.SUCCEEDED or judgement is None:
        return None
    return judgement.text if judgement.verdict is Verdict.FINISHED else None


def _conditions(snapshot: Snapshot, action: Wait | EndRun, phase: Phase) -> tuple[Condition, ...]:
    held = {
        RunCondition.FINISHED: phase.terminal,
        RunCondition.PROGRESSING: not phase.terminal and action.reason not in HELD_UP,
    }
    return tuple(
        build_condition(
            snapshot.run, kind, holds=holds, reason=action.reason, message=action.message, now=snapshot.now
        )
        for kind, holds in held.items()
    )


def _attempt(attempt: AttemptRow) -> AttemptStatus:
    limit = attempt.memory_limit_bytes
    return AttemptStatus(
        epoch=attempt.epoch,
        pod=attempt.pod,
        node=attempt.node,
        image=attempt.image,
        cause=attempt.cause,
        outcome=attempt.outcome if attempt.ended_at is not None else None,
        memory_limit=None if limit is None else format_memory(limit),
        started_at=attempt.created_at,
        ended_at=attempt.ended_at,
        message=attempt.error,
    )


def _resumes(snapshot: Snapshot) -> int:
    """Count the attempts after the first that began: what replaces a pod that never ran resumes nothing."""
    began = [attempt.claimed_at is not None for attempt in snapshot.attempts]
    return len(began) - began.index(True) - 1 if True in began else 0


def _recovery_seconds(snapshot: Snapshot) -> float | None:
    """Give the seconds from the last loss that was made good to the first write after it."""
    pairs = list(zip(snapshot.attempts, snapshot.attempts[1:], strict=False))
    for lost, following in reversed(pairs):
        if lost.lost_at is not None and following.first_write_at is not None:
            return round(max(0.0, (following.first_write_at - lost.lost_at).total_seconds()), 3)
    return None
