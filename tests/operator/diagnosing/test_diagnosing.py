"""Every row of the table of losses, as pods show them."""

import pytest

from support.clock import NOW, ago, ahead
from support.pods import PodBuilder, a_pod
from triage_contract.states import Cause, ExitCode
from triage_operator.diagnosing import PodState, cause_of_absence, diagnose
from triage_operator.reasons import Reason

ENDED, LEAVING, RUNNING, PENDING = PodState.ENDED, PodState.LEAVING, PodState.RUNNING, PodState.PENDING

_NODE_LOW = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi."
_SHUTDOWN = "Pod was terminated in response to imminent node shutdown."
_STORAGE = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "

ENDS: list[tuple[str, PodBuilder, Cause | None]] = [
    ("OOMKilled with 137 is out of memory", a_pod().exited(137, "OOMKilled"), Cause.OOM),
    ("OOMKilled with 143 is a SIGTERM with a stuck counter", a_pod().exited(143, "OOMKilled"), Cause.SIGTERM),
    ("OOMKilled with 0 is what exit 0 is", a_pod().exited(0, "OOMKilled"), Cause.EXIT0_UNFINISHED),
    ("OOMKilled with 1 is what exit 1 is", a_pod().exited(1, "OOMKilled"), Cause.APP_ERROR),
    ("a bare 137 is never taken for out of memory", a_pod().exited(137), Cause.SIGKILL),
    ("a bare 143", a_pod().exited(143), Cause.SIGTERM),
    ("exit 1", a_pod().exited(1), Cause.APP_ERROR),
    ("a container that could not be started", a_pod().exited(128, "StartError"), Cause.APP_ERROR),
    ("exit 0", a_pod().exited(0), Cause.EXIT0_UNFINISHED),
    ("waiting", a_pod().exited(ExitCode.WAITING), None),
    ("handed off", a_pod().exited(ExitCode.HANDED_OFF), Cause.SIGTERM),
    ("already finished", a_pod().exited(ExitCode.ALREADY_FINISHED), None),
    ("unknown invocation", a_pod().exited(ExitCode.UNKNOWN_INVOCATION), None),
    ("fenced", a_pod().exited(ExitCode.FENCED), None),
    ("in doubt", a_pod().exited(ExitCode.IN_DOUBT), None),
    ("bad configuration", a_pod().exited(ExitCode.BAD_CONFIGURATION), Cause.BAD_CONFIG),
    ("no database", a_pod().exited(ExitCode.DATABASE_UNREACHABLE), Cause.NO_DATABASE),
    ("failed", a_pod().exited(ExitCode.FAILED), Cause.MODEL_ERROR),
    (
        "evicted for want of the node's memory",
        a_pod().exited(137).failed("Evicted", _NODE_LOW).disrupted("TerminationByKubelet"),
        Cause.NODE_PRESSURE,
    ),
    (
        "evicted for want of the node's memory before 1.26",
        a_pod().exited(137).failed("Evicted", _NODE_LOW),
        Cause.NODE_PRESSURE,
    ),
    ("evicted for its own storage", a_pod().exited(137).failed("Evicted", _STORAGE), Cause.STORAGE_LIMIT),
    (
        "evicted for its own emptyDir",
        a_pod().exited(137).failed("Evicted", 'Usage of EmptyDir volume "tmp" exceeds the limit "1Mi". '),
        Cause.STORAGE_LIMIT,
    ),
    (
        "the node shuts down",
        a_pod().exited(143).failed("Terminated", _SHUTDOWN).disrupted("TerminationByKubelet"),
        Cause.NODE_SHUTDOWN,
    ),
    ("drained", a_pod().exited(143).evicted(), Cause.DRAIN),
    ("drained, and killed at the end of its grace period", a_pod().exited(137).evicted(ago(30)), Cause.DRAIN),
    (
        "drained, and out of memory by a stuck counter",
        a_pod().exited(137, "OOMKilled").evicted(ago(30)),
        Cause.DRAIN,
    ),
    ("drained before it had started", a_pod().scheduled().waiting().evicted(), Cause.DRAIN),
    ("preempted", a_pod().exited(143).disrupted("PreemptionByScheduler").deleted(), Cause.PREEMPTED),
    (
        "preempted for a critical pod",
        a_pod().exited(143).failed("Preempting").disrupted("TerminationByKubelet"),
        Cause.PREEMPTED,
    ),
    ("deleted", a_pod().exited(143).deleted(), Cause.DELETED),
    ("deleted, and killed", a_pod().exited(137).deleted(grace_seconds=0), Cause.DELETED),
    ("deleted before it had started", a_pod().scheduled().waiting().deleted(), Cause.DELETED_PENDING),
    ("failed as deleted", a_pod().failed("Deleted"), Cause.DELETED_PENDING),
    (
        "its node is gone, its container said to run",
        a_pod().running().failed("").disrupted("DeletionByPodGC"),
        Cause.NODE_GONE,
    ),
    (
        "its node is unreachable, its status made up",
        a_pod().exited(137, "ContainerStatusUnknown").disrupted("DeletionByTaintManager").deleted(),
        Cause.NODE_LOST,
    ),
    ("a status made up with 137", a_pod().exited(137, "ContainerStatusUnknown"), Cause.STATUS_UNKNOWN),
    ("a status made up with 255", a_pod().exited(255, "Unknown"), Cause.STATUS_UNKNOWN),
    ("failed while its container is said to run", a_pod().running().failed(""), Cause.STATUS_UNKNOWN),
    ("no room on its node", a_pod().scheduled().failed("OutOfcpu"), Cause.REJECTED),
    ("its device is gone", a_pod().scheduled().failed("UnexpectedAdmissionError"), Cause.REJECTED),
    ("its node does not fit any more", a_pod().scheduled().failed("NodeAffinity"), Cause.REJECTED),
    ("its node was shutting down already", a_pod().scheduled().failed("NodeShutdown"), Cause.REJECTED),
    (
        "its init container failed",
        a_pod().scheduled().waiting("PodInitializing").with_init(terminated={"exitCode": 2}).failed(""),
        Cause.APP_ERROR,
    ),
    ("a sidecar runs on", a_pod().exited(137).with_sidecar(), Cause.SIGKILL),
    # Pods that ended may be evicted and deleted afterwards: that explains nothing.
    ("killed a minute before it was drained", a_pod().exited(137, at=ago(60)).evicted(), Cause.SIGKILL),
    (
        "out of memory a minute before it was drained",
        a_pod().exited(137, "OOMKilled", at=ago(60)).evicted(),
        Cause.OOM,
    ),
    ("failed a minute before it was deleted", a_pod().exited(1, at=ago(60)).deleted(), Cause.APP_ERROR),
    ("a node's clock that is behind", a_pod().exited(137, at=ago(4)).deleted(), Cause.DELETED),
]

ON_THEIR_WAY: list[tuple[str, PodBuilder, PodState, Cause | None]] = [
    ("just created", a_pod(), PENDING, None),
    ("without a node", a_pod().unschedulable(), PENDING, None),
    ("its container is being made", a_pod().scheduled().waiting(), PENDING, None),
    ("its sidecar runs, its container does not", a_pod().scheduled().waiting().with_sidecar(), PENDING, None),
    ("running", a_pod().running(), RUNNING, None),
    (
        "running beside a sidecar that cannot start",
        a_pod().running().with_init(waiting={"reason": "ErrImagePull"}),
        RUNNING,
        None,
    ),
    (
        "running, and an eviction was announced",
        a_pod().running().disrupted("EvictionByEvictionAPI"),
        RUNNING,
        None,
    ),
    ("running while it is drained", a_pod().running().evicted(), LEAVING, Cause.DRAIN),
    ("running while it is deleted", a_pod().running().deleted(), LEAVING, Cause.DELETED),
    (
        "running while it is preempted",
        a_pod().running().disrupted("PreemptionByScheduler").deleted(),
        LEAVING,
        Cause.PREEMPTED,
    ),
    (
        "said to run on a node that is unreachable",
        a_pod().running().disrupted("DeletionByTaintManager").deleted(),
        LEAVING,
        Cause.NODE_LOST,
    ),
]

ABSENCES: list[tuple[str, PodBuilder, Cause | None]] = [
    ("last seen well", a_pod().running(), None),
    ("last seen pending", a_pod().scheduled().waiting(), Cause.DELETED_PENDING),
    ("last seen without a node", a_pod().unschedulable(), Cause.DELETED_PENDING),
    ("last seen on its way out", a_pod().running().deleted(), Cause.DELETED),
    (
        "last seen when its eviction was announced",
        a_pod().running().disrupted("EvictionByEvictionAPI"),
        Cause.DRAIN,
    ),
    ("last seen killed", a_pod().exited(137), Cause.SIGKILL),
    ("last seen finished", a_pod().exited(0), Cause.EXIT0_UNFINISHED),
    ("last seen ended as the database knows", a_pod().exited(ExitCode.WAITING), None),
    (
        "last seen well, its init container having been restarted",
        a_pod().running().with_init(terminated={"exitCode": 1}),
        None,
    ),
]


@pytest.mark.parametrize(("pod", "cause"), [pytest.param(pod, cause, id=name) for name, pod, cause in ENDS])
def test_pod_that_ended(pod: PodBuilder, cause: Cause | None) -> None:
    diagnosis = diagnose(pod.json)

    assert (diagnosis.state, diagnosis.cause) == (ENDED, cause)


@pytest.mark.parametrize(
    ("pod", "state", "cause"),
    [pytest.param(pod, state, cause, id=name) for name, pod, state, cause in ON_THEIR_WAY],
)
def test_pod_that_has_not_ended(pod: PodBuilder, state: PodState, cause: Cause | None) -> None:
    diagnosis = diagnose(pod.json)

    assert (diagnosis.state, diagnosis.cause, diagnosis.exit_code) == (state, cause, None)


@pytest.mark.parametrize(
    ("pod", "cause"), [pytest.param(pod, cause, id=name) for name, pod, cause in ABSENCES]
)
def test_pod_that_is_gone(pod: PodBuilder, cause: Cause | None) -> None:
    assert cause_of_absence(pod.json) == cause


@pytest.mark.parametrize(
    ("pod", "held_up"),
    [
        (a_pod(), None),
        (a_pod().unschedulable(), Reason.UNSCHEDULABLE),
        (a_pod().scheduled().waiting(), None),
        (a_pod().scheduled().waiting("PodInitializing"), None),
        *(
            (a_pod().scheduled().waiting(reason), Reason.START_BLOCKED)
            for reason in (
                "ImagePullBackOff",
                "ErrImagePull",
                "InvalidImageName",
                "CreateContainerConfigError",
                "CreateContainerError",
            )
        ),
        (
            a_pod().scheduled().waiting("PodInitializing").with_init(waiting={"reason": "ImagePullBackOff"}),
            Reason.START_BLOCKED,
        ),
        (a_pod().running(), None),
    ],
)
def test_what_holds_a_pending_pod_up(pod: PodBuilder, held_up: Reason | None) -> None:
    assert diagnose(pod.json).held_up == held_up


def test_times() -> None:
    pending, running = (
        diagnose(a_pod().scheduled(ago(7)).json),
        diagnose(a_pod().running(ago(5)).deleted().json),
    )

    assert (pending.since, pending.ends_at) == (ago(7), None)
    assert (running.since, running.ends_at) == (ago(5), ahead(30))
    assert diagnose(a_pod().json).since is None


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (a_pod(), "The agent container waits: Scheduled."),
        (a_pod().unschedulable(), "The pod has no node: 0/2 nodes are available."),
        (
            a_pod().scheduled().waiting("CreateContainerConfigError", 'secret "gemini" not found'),
            'The agent container waits: CreateContainerConfigError: secret "gemini" not found.',
        ),
        (a_pod().running(), "The agent container runs."),
        (a_pod().running().evicted(), "The pod is being deleted: EvictionByEvictionAPI."),
        (a_pod().running().deleted(), "The pod is being deleted: by request."),
        (a_pod().waiting().deleted(), "The pod was deleted before its agent container started."),
        (a_pod().exited(0), "The agent container ended with exit code 0."),
        (a_pod().oom_killed(), "The agent container ended with exit code 137 (OOMKilled)."),
        (
            a_pod().exited(1, message="Traceback:\n  line 1\nKeyError: 'page'\n"),
            "The agent container ended with exit code 1: KeyError: 'page'.",
        ),
        (
            a_pod().exited(1, message='{"asctime": "2026-01-01", "message": "the agent raised"}'),
            "The agent container ended with exit code 1: the agent raised.",
        ),
        (
            a_pod().exited(137, message="an event was stored"),
            "The agent container ended with exit code 137.",
        ),
        (
            a_pod().exited(87, message='{"outcome": null, "message": "no database at db:5432"}'),
            "The agent container ended with exit code 87: no database at db:5432.",
        ),
        (
            a_pod().exited(1, message="cannot connect to postgresql://triage:hunter2@db:5432/triage"),
            "The agent container ended with exit code 1: cannot connect to postgresql://***@db:5432/triage.",
        ),
        (
            a_pod().scheduled().failed("OutOfcpu", "No room"),
            "The pod is Failed: OutOfcpu: No room.",
        ),
        (
            a_pod().waiting().with_init(terminated={"exitCode": 2}).failed(""),
            "Init container fetch ended with exit code 2.",
        ),
    ],
)
def test_message_is_a_sentence(pod: PodBuilder, message: str) -> None:
    assert diagnose(pod.json).message == message


def test_message_is_bounded() -> None:
    assert len(diagnose(a_pod().exited(1, message="x" * 5000).json).message) <= 500


@pytest.mark.parametrize("status", [None, {}, {"containerStatuses": None, "conditions": None}])
def test_pod_without_a_status_is_pending(status: object) -> None:
    assert diagnose({"metadata": {}, "status": status}).state is PENDING


def test_end_without_a_time_goes_by_the_deletion() -> None:
    pod = a_pod().deleted(at=NOW).json
    pod["status"]["containerStatuses"] = [{"name": "agent", "state": {"terminated": {"exitCode": 137}}}]

    assert diagnose(pod).cause is Cause.DELETED
