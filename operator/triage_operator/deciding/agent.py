"""Without a usable agent no attempt starts, and its run waits: whoever mends the agent loses nothing."""

from triage_operator.actions import Wait
from triage_operator.manifests import template_fault
from triage_operator.phases import standing_phase
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def wait_for_agent(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Wait while the agent is missing or its pods cannot be made."""
    agent = snapshot.agent
    if agent is None:
        name = f"{snapshot.run.metadata.namespace}/{snapshot.run.spec.agent_ref.name}"
        reason = Reason.UNKNOWN_AGENT if snapshot.agent_error is None else Reason.BAD_AGENT
        message = snapshot.agent_error or f"There is no TriageAgent {name}."
    elif (fault := template_fault(agent)) is not None:
        reason, message = Reason.BAD_AGENT, fault
    else:
        return None
    return Wait(reason=reason, message=message, phase=standing_phase(snapshot), until=None)
