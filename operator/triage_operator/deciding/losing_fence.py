"""An attempt that may not write any more is lost, whoever closed its fence.

Most likely this operator did, or the one before it, and died before it recorded the attempt's end.
"""

from triage_contract.states import Outcome
from triage_operator.actions import EndAttempt
from triage_operator.deciding.ending import end
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def lose_fenced(snapshot: Snapshot, settings: DecidingSettings) -> EndAttempt | None:
    """End an open attempt that is behind its fence. Its cause is filled in by what becomes of its pod."""
    attempt, fence = snapshot.open_attempt, snapshot.fence
    # A fence that is behind the attempt was read before the attempt was opened.
    if attempt is None or fence is None or fence.epoch < attempt.epoch:
        return None
    if fence.epoch == attempt.epoch and fence.token is not None:
        return None
    return end(
        attempt,
        outcome=Outcome.LOST,
        reason=Reason.LOST,
        message=f"Attempt {attempt.epoch} may not write any more.",
    )
