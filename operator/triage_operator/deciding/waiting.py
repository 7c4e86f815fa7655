"""A run that waits for a person has no pod."""

from datetime import datetime, timedelta

from triage_contract.states import Phase, ToolKind, Verdict
from triage_contract.verdict import Judgement, Remedy
from triage_operator.actions import Wait
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def wait_for_person(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Wait for an answer, or for a decision about a call in doubt that cannot be settled otherwise."""
    judgement = snapshot.judgement
    if judgement is None:
        return None
    if judgement.verdict is Verdict.WAITING:
        return Wait(reason=Reason.INPUT_REQUIRED, message=judgement.why, phase=Phase.WAITING, until=None)
    parked = [doubt for doubt in judgement.doubts if doubt.remedy is Remedy.PARK]
    if not parked:
        return None
    calls = "; ".join(f"call {it.key} of {it.name}, attempt {it.epoch}" for it in parked)
    return Wait(
        reason=Reason.IN_DOUBT,
        message=f"Begun, and not known to have happened: {calls}. Decide in spec.decisions.",
        phase=Phase.WAITING,
        until=_look_again_at(snapshot, judgement, settings),
    )


def _look_again_at(snapshot: Snapshot, judgement: Judgement, settings: DecidingSettings) -> datetime | None:
    """Give when a node may have been declared out of service: nothing else tells of that."""
    doubtful = {doubt.key for doubt in judgement.doubts}
    epochs = {
        call.epoch for call in snapshot.journal if call.key in doubtful and call.kind == ToolKind.RECONCILE
    }
    is_open = any(
        attempt.epoch in epochs and attempt.confirmed_at is None and attempt.node is not None
        for attempt in snapshot.attempts
    )
    return snapshot.now + timedelta(seconds=settings.evidence_seconds) if is_open else None
