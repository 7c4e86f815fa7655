"""How long an attempt may take to start."""

from support.builders import Scenario, a_run, podless, table, unclaimed
from support.clock import ago
from support.pods import PodBuilder, a_pod

_PULLING = a_pod().scheduled(ago(299)).waiting("ImagePullBackOff", "Back-off pulling image")


def _starting(pod: PodBuilder, created: float = 300) -> Scenario:
    return a_run().attempted(unclaimed(created_at=ago(created))).with_pod(pod)


@table(
    (
        "a pod without a node waits without limit",
        _starting(a_pod().unschedulable(), created=9000),
        "Wait Pending Unschedulable",
    ),
    (
        "a pod without a node waits as long as the run says",
        _starting(a_pod().unschedulable(), created=59).asking(startDeadlineSeconds=60),
        "Wait Pending Unschedulable until +1",
    ),
    (
        "a pod without a node fails its run at the run's limit",
        _starting(a_pod().unschedulable(), created=60).asking(startDeadlineSeconds=60),
        "EndAttempt 101 cancelled - StartDeadlineExceeded",
    ),
    (
        "an image that cannot be pulled is waited for",
        _starting(_PULLING),
        "Wait Pending StartBlocked until +1",
    ),
    (
        "an image that cannot be pulled fails its run at the operator's limit",
        _starting(_PULLING.scheduled(ago(300))),
        "EndAttempt 101 cancelled - StartDeadlineExceeded",
    ),
    (
        "a volume that cannot be mounted, of which the pod says nothing, fails it too",
        _starting(a_pod().scheduled(ago(300)).waiting()),
        "EndAttempt 101 cancelled - StartDeadlineExceeded",
    ),
    (
        "the time without a node is not taken for a blocked start",
        _starting(a_pod().scheduled(ago(10)).waiting(), created=9000),
        "Wait Pending Pending until +290",
    ),
    (
        "an init container that cannot start blocks as well",
        _starting(
            a_pod().scheduled(ago(1)).waiting("PodInitializing").with_init(waiting={"reason": "ErrImagePull"})
        ),
        "Wait Pending StartBlocked until +299",
    ),
    (
        "a pod that runs is not too late, whatever the run's limit",
        _starting(a_pod().running(ago(1))).asking(startDeadlineSeconds=60),
        "Wait Pending Pending until +119",
    ),
    (
        "a pod that is being deleted is not late but leaving",
        _starting(a_pod().running(ago(500)).deleted()).asking(startDeadlineSeconds=60),
        "Wait Pending HandingOff until +32",
    ),
    (
        "a process that never claims hangs, and the next attempt may do better",
        _starting(a_pod().running(ago(120))),
        "EndAttempt 101 lost unresponsive Lost counted",
    ),
    (
        "a process cannot claim while the database is away",
        _starting(a_pod().running(ago(500))).reachable_for(20),
        "Wait Pending Pending until +100",
    ),
    (
        "a pod that the API server refuses for good fails its run",
        a_run().attempted(podless(created_at=ago(300))).refused(at=ago(1)),
        "EndAttempt 101 cancelled - StartDeadlineExceeded",
    ),
    (
        "a pod beyond a quota waits without limit",
        a_run().attempted(podless(created_at=ago(9000))).refused(at=ago(1), passing=True),
        "Wait Pending PodRefused until +9",
    ),
    (
        "an attempt by hand that was never claimed is given up",
        a_run().attempted(podless(pod=None, created_at=ago(120))),
        "EndAttempt 101 lost vanished Lost",
    ),
)
def test_open_attempt_has_to_start(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_late_start_says_what_the_pod_waited_for() -> None:
    action = _starting(_PULLING.scheduled(ago(300))).action()

    assert action.message == (
        "The agent container did not start in time:"
        " The agent container waits: ImagePullBackOff: Back-off pulling image."
    )
