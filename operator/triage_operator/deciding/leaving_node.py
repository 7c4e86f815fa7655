"""A node that takes no more pods is about to go: the attempt leaves it before an eviction comes."""

from collections.abc import Mapping
from typing import Any, Final

from triage_contract.states import Cause
from triage_operator.actions import RequestHandoff
from triage_operator.diagnosing import PodState, diagnose
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Pod, Snapshot

_TAINT: Final = "node.kubernetes.io/unschedulable"


def leave_node(snapshot: Snapshot, settings: DecidingSettings) -> RequestHandoff | None:
    """Ask an attempt on an unschedulable node to hand off, once."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.claimed_at is None or attempt.handoff_requested_at is not None:
        return None
    pod = snapshot.pod_of(attempt)
    if pod is None or not snapshot.node_unschedulable or _would_return(pod):
        return None
    if diagnose(pod).state is not PodState.RUNNING:
        return None
    return RequestHandoff(
        reason=Reason.HANDING_OFF,
        message=f"The node of attempt {attempt.epoch} takes no more pods: the attempt is to hand off.",
        serial=attempt.serial,
        cause=Cause.DRAIN,
    )


def _would_return(pod: Pod) -> bool:
    """Say whether the successor could get the same node again, and would have to leave it again, for ever."""
    tolerations: list[Mapping[str, Any]] = pod["spec"].get("tolerations") or []
    return any(item.get("key") in (None, "", _TAINT) for item in tolerations)
