"""Why a pod is lost: one ordered table, the first row that sees its sign decides.

Signs of the pod come before those of the container, since a disruption explains any exit code. What only a
node shows (its conditions and taints) becomes more rows, once ``PodFacts`` holds it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from triage_contract.states import Cause, ExitCode
from triage_operator.diagnosing.facts import PodFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A sign and its cause. ``cause`` None: the database says what became of the attempt, not the pod."""

    cause: Cause | None
    sees: Callable[[PodFacts], bool]


def _reason(*reasons: str) -> Callable[[PodFacts], bool]:
    return lambda pod: pod.phase == "Failed" and pod.reason in reasons


def _disruption(reason: str) -> Callable[[PodFacts], bool]:
    return lambda pod: pod.disruption == reason


def _exit(*codes: int) -> Callable[[PodFacts], bool]:
    return lambda pod: pod.exit_code in codes


def _beyond_own_storage(pod: PodFacts) -> bool:
    # Before 1.26 no eviction had a condition; those for want of the node's resources begin with "The node".
    return (
        _reason("Evicted")(pod) and pod.disruption is None and not (pod.message or "").startswith("The node ")
    )


ROWS: Final = (
    # KEP-2000, pkg/kubelet/nodeshutdown: "Pod was terminated in response to imminent node shutdown."
    Row(
        cause=Cause.NODE_SHUTDOWN,
        sees=lambda pod: _reason("Terminated")(pod) and "node shutdown" in (pod.message or ""),
    ),
    # pkg/kubelet/eviction, localStorageEviction: evicted for its own sake, hence without a condition.
    Row(cause=Cause.STORAGE_LIMIT, sees=_beyond_own_storage),
    # Node-pressure eviction; KEP-3329: with DisruptionTarget, reason TerminationByKubelet.
    Row(cause=Cause.NODE_PRESSURE, sees=_reason("Evicted")),
    # KEP-3329: a pod of higher priority took its place, by the scheduler's or the kubelet's will.
    Row(cause=Cause.PREEMPTED, sees=_disruption("PreemptionByScheduler")),
    Row(cause=Cause.PREEMPTED, sees=_reason("Preempting")),
    # KEP-3329: the eviction API, which kubectl drain uses. The condition is written before the deletion.
    Row(cause=Cause.DRAIN, sees=_disruption("EvictionByEvictionAPI")),
    # KEP-3329: a NoExecute taint that the pod does not tolerate, such as that of an unreachable node.
    Row(cause=Cause.NODE_LOST, sees=_disruption("DeletionByTaintManager")),
    # KEP-3329: the pod's node object is gone; its containers may still be said to run.
    Row(cause=Cause.NODE_GONE, sees=_disruption("DeletionByPodGC")),
    # A pod that was deleted before it ran: said so, or seen with a deletion and no container that started.
    Row(cause=Cause.DELETED_PENDING, sees=_reason("Deleted")),
    Row(
        cause=Cause.DELETED_PENDING,
        sees=lambda pod: pod.deleted_at is not None and not pod.running and pod.exit_code is None,
    ),
    # A plain deletion leaves no condition.
    Row(cause=Cause.DELETED, sees=lambda pod: pod.deleted_at is not None),
    # Refused by the kubelet at admission (OutOfcpu, UnexpectedAdmissionError, NodeAffinity, NodeShutdown, …).
    Row(cause=Cause.REJECTED, sees=lambda pod: pod.phase == "Failed" and not pod.described),
    # pkg/kubelet: a kubelet that lost track of the container made its status up.
    Row(cause=Cause.STATUS_UNKNOWN, sees=lambda pod: pod.status_made_up),
    # The cgroup's count of OOM kills is cumulative: an OOMKilled with another exit code was not killed by it
    # (kubernetes/kubernetes 131530 and 140718).
    Row(cause=Cause.OOM, sees=lambda pod: pod.exit_code == 137 and pod.end_reason == "OOMKilled"),
    Row(cause=Cause.SIGKILL, sees=_exit(137)),
    Row(cause=Cause.SIGTERM, sees=_exit(143, ExitCode.HANDED_OFF)),
    # Codes of our own (triage_contract.states.ExitCode).
    Row(cause=Cause.BAD_CONFIG, sees=_exit(ExitCode.BAD_CONFIGURATION)),
    Row(cause=Cause.NO_DATABASE, sees=_exit(ExitCode.DATABASE_UNREACHABLE)),
    Row(cause=Cause.MODEL_ERROR, sees=_exit(ExitCode.FAILED)),
    Row(
        cause=None,
        sees=_exit(
            ExitCode.WAITING,
            ExitCode.ALREADY_FINISHED,
            ExitCode.UNKNOWN_INVOCATION,
            ExitCode.FENCED,
            ExitCode.IN_DOUBT,
        ),
    ),
    # The session decides whether it was finished; a pod that exits 0 at SIGTERM is reported as Succeeded.
    Row(cause=Cause.EXIT0_UNFINISHED, sees=_exit(0)),
    Row(cause=Cause.EXIT0_UNFINISHED, sees=lambda pod: pod.exit_code is None and pod.phase == "Succeeded"),
    Row(cause=Cause.APP_ERROR, sees=lambda pod: pod.exit_code is not None),
    Row(cause=Cause.APP_ERROR, sees=lambda pod: pod.phase == "Failed" and pod.init_failure is not None),
    # Failed by the control plane, with the agent container in whatever state.
    Row(cause=Cause.STATUS_UNKNOWN, sees=lambda pod: pod.phase == "Failed"),
)
