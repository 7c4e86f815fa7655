"""A run that waits for a person has no pod."""

from typing import Final

from triage_contract.states import Phase, Verdict
from triage_operator.actions import Wait
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

_REASONS: Final = {Verdict.WAITING: Reason.INPUT_REQUIRED, Verdict.IN_DOUBT: Reason.IN_DOUBT}


def wait_for_person(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Wait for an answer or a decision."""
    judgement = snapshot.judgement
    if judgement is None or judgement.verdict not in _REASONS:
        return None
    reason = _REASONS[judgement.verdict]
    return Wait(reason=reason, message=judgement.why, phase=Phase.WAITING, until=None)
