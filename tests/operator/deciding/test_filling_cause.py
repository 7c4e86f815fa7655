"""Causes that become known after the loss."""

from support.builders import Scenario, a_run, an_attempt, ended, lost, table
from support.clock import ago
from support.pods import a_pod
from triage_contract.states import Cause, Outcome

_UNKNOWN = a_run().attempted(lost(None))
_NEXT = a_run().attempted(lost(None, ended_at=ago(2)), an_attempt()).with_pod(a_pod().running())


@table(
    (
        "the kubelet says that it was memory",
        _UNKNOWN.with_pod(a_pod().oom_killed()),
        "FillCause 101 oom",
    ),
    (
        "the kubelet says that it was killed",
        _UNKNOWN.with_pod(a_pod().exited(137)),
        "FillCause 101 sigkill counted",
    ),
    (
        "it was alive after all, and left when it found itself fenced",
        _UNKNOWN.with_pod(a_pod().exited(84)),
        "FillCause 101 unresponsive counted",
    ),
    (
        "it was alive until its pod was deleted, and silent",
        _UNKNOWN.with_pod(a_pod().exited(137).deleted()),
        "FillCause 101 unresponsive counted",
    ),
    ("its pod is gone", _UNKNOWN, "FillCause 101 vanished"),
    (
        "its pod is gone, deleted after the loss",
        _UNKNOWN.with_last_pod(a_pod().running().deleted()),
        "FillCause 101 vanished",
    ),
    (
        "its pod is gone, last seen drained",
        _UNKNOWN.with_last_pod(a_pod().exited(137).evicted()),
        "FillCause 101 drain",
    ),
    (
        "its pod says nothing yet, and the next attempt does not wait for that",
        _UNKNOWN.with_pod(a_pod().running()),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "its pod tells while the next attempt is at work",
        _NEXT.with_pod(a_pod().oom_killed(), epoch=1),
        "FillCause 101 oom",
    ),
    (
        "its pod says nothing yet while the next attempt is at work",
        _NEXT.with_pod(a_pod().running(), epoch=1),
        "Wait Recovering Running until +28",
    ),
    (
        "what seemed to have vanished was seen after all",
        a_run().attempted(lost(Cause.VANISHED)).with_last_pod(a_pod().running().evicted()),
        "FillCause 101 drain",
    ),
    (
        "a hand-off at SIGTERM was the node's shutdown",
        a_run()
        .attempted(ended(Outcome.HANDED_OFF, Cause.SIGTERM))
        .with_pod(
            a_pod()
            .exited(81)
            .failed("Terminated", "Pod was terminated in response to imminent node shutdown.")
        ),
        "FillCause 101 node_shutdown",
    ),
    (
        "a process that was killed after it had handed off handed off",
        a_run().attempted(ended(Outcome.HANDED_OFF, Cause.SIGTERM)).with_pod(a_pod().exited(137)),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "a hand-off at SIGTERM stays one",
        a_run().attempted(ended(Outcome.HANDED_OFF, Cause.SIGTERM)).with_pod(a_pod().exited(81)),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "a vanished pod stays vanished",
        a_run().attempted(lost(Cause.VANISHED)),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "a cause that is known is not changed by what a kubelet says later",
        a_run()
        .attempted(lost(Cause.SIGKILL, exit_code=137))
        .with_pod(a_pod().scheduled().failed("OutOfcpu")),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "an end that only the database explains is not asked for again",
        a_run().attempted(lost(None, exit_code=84)).with_pod(a_pod().exited(84)),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
)
def test_cause_is_filled_in(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
