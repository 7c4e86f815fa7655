"""A recorded attempt without a pod gets one: the operator may have died between the row and the pod."""

from datetime import timedelta

from triage_operator.actions import Action, CreatePod, Wait
from triage_operator.deciding.agent import wait_for_agent
from triage_operator.phases import standing_phase
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def make_pod(snapshot: Snapshot, settings: DecidingSettings) -> Action | None:
    """Make the open attempt's pod. That it never had one is settled before."""
    attempt = snapshot.open_attempt
    if attempt is None or attempt.pod is None or snapshot.pod_of(attempt) is not None:
        return None
    if (refusal := snapshot.refusal) is not None:
        again_at = refusal.at + timedelta(seconds=settings.refusal_retry_seconds)
        if snapshot.now < again_at:
            return Wait(
                reason=Reason.POD_REFUSED,
                message=f"The API server refused the pod: {refusal.message}",
                phase=standing_phase(snapshot),
                until=again_at,
            )
    if (wait := wait_for_agent(snapshot, settings)) is not None:
        return wait
    if snapshot.foreign_pod:
        message = f"Pod {attempt.pod} belongs to somebody else: attempt {attempt.epoch} takes another name."
        return CreatePod(reason=Reason.FOREIGN_POD, message=message, serial=attempt.serial, next_name=True)
    message = f"Making the pod of attempt {attempt.epoch}."
    return CreatePod(reason=Reason.STARTING, message=message, serial=attempt.serial, next_name=False)
