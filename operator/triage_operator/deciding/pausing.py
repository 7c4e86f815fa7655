"""A resume waits its time when the last one made no progress, or the model asked for patience."""

from datetime import UTC

from triage_contract.states import Outcome
from triage_operator.actions import Wait
from triage_operator.backing_off import ready_at
from triage_operator.phases import standing_phase
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def pause(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Wait until the next attempt may start."""
    newest, agent = snapshot.newest, snapshot.agent
    if newest is None or agent is None:
        return None
    ready = ready_at(
        snapshot.run.metadata.uid,
        snapshot.attempts,
        agent.spec.resume.backoff,
        settings.retry_after_limit_seconds,
    )
    if ready is None or snapshot.now >= ready:
        return None
    unavailable = newest.outcome is Outcome.MODEL_UNAVAILABLE
    after = newest.error or f"it ended with {newest.cause or newest.outcome}"
    return Wait(
        reason=Reason.MODEL_UNAVAILABLE if unavailable else Reason.BACKING_OFF,
        message=f"The next attempt starts at {ready.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}; the last one: {after}",
        phase=standing_phase(snapshot),
        until=ready,
    )
