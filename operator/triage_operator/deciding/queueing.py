"""``concurrency.maxRunning``: runs wait for a place, the oldest first. A resume waits too."""

from triage_operator.actions import Wait
from triage_operator.phases import standing_phase
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def queue(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Wait for a place. Whoever ends an attempt wakes the runs that wait."""
    agent = snapshot.agent
    places = None if agent is None else agent.spec.concurrency.max_running
    if places is None or snapshot.running + snapshot.ahead < places:
        return None
    message = f"All {places} places of concurrency.maxRunning are taken."
    return Wait(reason=Reason.QUEUED, message=message, phase=standing_phase(snapshot), until=None)
