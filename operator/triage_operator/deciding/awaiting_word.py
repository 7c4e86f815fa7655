"""Before its outside world is asked about a call, a kubelet has a moment to say that its process is dead.

What did not happen may run again only then: an attempt that asks too early leaves a person to decide, or another
attempt to ask again.
"""

from datetime import timedelta

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Phase, Verdict
from triage_operator.actions import Wait
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def await_word(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Wait for word of the death of each process that began a call to be asked about."""
    judgement = snapshot.judgement
    if judgement is None or judgement.verdict is not Verdict.IN_DOUBT:
        return None
    epochs = {doubt.epoch for doubt in judgement.doubts}
    silent = [
        attempt for attempt in snapshot.attempts if attempt.epoch in epochs and _may_tell(snapshot, attempt)
    ]
    until = max((attempt.ended_at for attempt in silent if attempt.ended_at is not None), default=None)
    if until is None:
        return None
    until += timedelta(seconds=settings.kubelet_word_seconds)
    if snapshot.now >= until:
        return None
    message = f"{judgement.why} Waiting for word that the process which began it is dead."
    return Wait(reason=Reason.LOST, message=message, phase=Phase.RECOVERING, until=until)


def _may_tell(snapshot: Snapshot, attempt: AttemptRow) -> bool:
    return (
        attempt.confirmed_at is None and attempt.released_at is None and snapshot.pod_of(attempt) is not None
    )
