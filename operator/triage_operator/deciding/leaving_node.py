"""A node that is about to go: the attempt leaves it before an eviction comes."""

from triage_contract.states import Cause
from triage_operator.actions import RequestHandoff
from triage_operator.diagnosing import PodState, diagnose
from triage_operator.node_taints import tolerates
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def leave_node(snapshot: Snapshot, settings: DecidingSettings) -> RequestHandoff | None:
    """Ask an attempt on a node that is about to go to hand off, once."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.claimed_at is None or attempt.handoff_requested_at is not None:
        return None
    pod = snapshot.pod_of(attempt)
    if pod is None or diagnose(pod).state is not PodState.RUNNING or _is_pinned(snapshot):
        return None
    # The successor of one that tolerates them all could come back to the node, and would have to leave it for ever.
    taint = next((taint for taint in snapshot.parting_taints if not tolerates(pod, taint)), None)
    if taint is None:
        return None
    return RequestHandoff(
        reason=Reason.HANDING_OFF,
        message=f"The node of attempt {attempt.epoch} is about to go ({taint.key}): the attempt is to hand off.",
        serial=attempt.serial,
        cause=Cause.DRAIN,
    )


def _is_pinned(snapshot: Snapshot) -> bool:
    """Say whether the agent names the node of its pods, so that no scheduler heeds a taint."""
    return snapshot.agent is not None and bool(snapshot.agent.spec.pod_template.spec.get("nodeName"))
