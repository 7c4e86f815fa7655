"""Pods of ended attempts."""

from support.builders import Scenario, a_run, an_attempt, ended, lost, table
from support.clock import ago
from support.pods import PodBuilder, a_pod
from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome, RunState, Verdict

_RUNNING = a_pod().running()


def _then(first: AttemptRow, pod: PodBuilder) -> Scenario:
    """A run whose first attempt left this pod, and whose second one is at work."""
    return a_run().attempted(first, an_attempt()).with_pod(pod, epoch=1).with_pod(_RUNNING, epoch=2)


@table(
    (
        "a pod that hangs is deleted before the next attempt starts",
        a_run().attempted(lost(Cause.UNRESPONSIVE)).with_pod(_RUNNING),
        "DeletePod run-a1 pod-uid-1",
    ),
    (
        "the pod of a cancelled attempt is deleted",
        a_run().attempted(ended(Outcome.CANCELLED)).with_pod(_RUNNING).asking(cancel=True),
        "DeletePod run-a1 pod-uid-1",
    ),
    (
        "a pod that never started is deleted",
        a_run().attempted(ended(Outcome.HANDED_OFF, Cause.SUSPENDED)).with_pod(a_pod().unschedulable()),
        "DeletePod run-a1 pod-uid-1",
    ),
    (
        "a pod that only its sidecar keeps running is deleted",
        a_run().attempted(lost(Cause.SIGKILL)).with_pod(a_pod().exited(137).with_sidecar()),
        "DeletePod run-a1 pod-uid-1",
    ),
    (
        "a process that handed off may end by itself",
        _then(ended(Outcome.HANDED_OFF, Cause.SIGTERM, ended_at=ago(10)), _RUNNING),
        "Wait Recovering Running until +20",
    ),
    (
        "a process that handed off and does not end is deleted",
        _then(ended(Outcome.HANDED_OFF, Cause.SIGTERM, ended_at=ago(30)), _RUNNING),
        "DeletePod run-a1 pod-uid-1",
    ),
    (
        "the kubelet is left alone with a pod that it may still explain",
        _then(lost(None, ended_at=ago(10)), _RUNNING),
        "Wait Recovering Running until +20",
    ),
    (
        "a pod that failed stays for its logs",
        _then(lost(Cause.SIGKILL, exit_code=137), a_pod().exited(137)),
        "Wait Recovering Running",
    ),
    (
        "a pod that succeeded stays for its logs",
        a_run()
        .attempted(ended(Outcome.FINISHED, ended_at=ago(60)))
        .with_pod(a_pod().exited(0))
        .over(RunState.SUCCEEDED),
        "Wait Succeeded Completed",
    ),
    (
        "a pod on its way out is not deleted twice",
        _then(lost(Cause.UNRESPONSIVE), _RUNNING.deleted()),
        "Wait Recovering Running",
    ),
    (
        "a finished run keeps no pod running",
        a_run()
        .attempted(ended(Outcome.FINISHED, ended_at=ago(31)))
        .with_pod(_RUNNING)
        .over(RunState.SUCCEEDED)
        .judged(Verdict.FINISHED),
        "DeletePod run-a1 pod-uid-1",
    ),
)
def test_pods_of_ended_attempts(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
