"""When a process is known to be dead, and not only presumed."""

from support.builders import Scenario, a_call, a_run, an_attempt, ended, lost, table
from support.clock import ago
from support.pods import a_pod
from triage_contract.states import Cause, Outcome, RunState
from triage_operator.actions import EndAttempt, FillCause

_PRESUMED = lost(Cause.UNRESPONSIVE, confirmed_at=None)
_ON = a_run().attempted(_PRESUMED)


@table(
    ("its container was seen terminated", _ON.with_pod(a_pod().exited(137)), "ConfirmDeath 101"),
    (
        "its container was seen terminated before the pod went",
        _ON.with_last_pod(a_pod().exited(137).deleted()),
        "ConfirmDeath 101",
    ),
    (
        "once is enough",
        a_run().attempted(lost(Cause.SIGKILL)).with_pod(a_pod().exited(137)),
        "OpenAttempt after 1",
    ),
    (
        "a kubelet that had lost track of it knows nothing",
        _ON.with_pod(a_pod().exited(137, "ContainerStatusUnknown")),
        "OpenAttempt after 1",
    ),
    (
        "a kubelet that restarted knows nothing",
        _ON.with_pod(a_pod().exited(255, "Unknown")),
        "OpenAttempt after 1",
    ),
    (
        "a node object that is gone says nothing of its processes",
        a_run()
        .attempted(lost(Cause.NODE_GONE, confirmed_at=None))
        .with_pod(a_pod().running().disrupted("DeletionByPodGC").failed("")),
        "OpenAttempt after 1",
    ),
    ("a pod that runs says nothing", _ON.with_pod(a_pod().running().deleted()), "OpenAttempt after 1"),
    ("a pod that is gone says nothing", _ON, "OpenAttempt after 1"),
    (
        "its node is out of service",
        _ON.doubting(a_call(kind="Reconcile")).where(dead_nodes=frozenset({"node-a"})),
        "ConfirmDeath 101",
    ),
    (
        "another node is",
        _ON.doubting(a_call()).where(dead_nodes=frozenset({"node-b"})),
        "Wait Waiting",
    ),
    (
        "an attempt that handed off had no call left",
        a_run().attempted(ended(Outcome.HANDED_OFF, Cause.DRAIN)).with_pod(a_pod().exited(81)),
        "OpenAttempt after 1",
    ),
    (
        "also while the next attempt works",
        a_run()
        .attempted(_PRESUMED, an_attempt())
        .with_pod(a_pod().exited(137), epoch=1)
        .with_pod(a_pod().running(), epoch=2),
        "ConfirmDeath 101",
    ),
    (
        "of a run that is over nobody asks",
        _ON.with_pod(a_pod().exited(137)).over(RunState.FAILED, "NoProgress: So it was."),
        "Wait Failed",
    ),
)
def test_death_is_confirmed(scenario: Scenario, expected: str) -> None:
    assert scenario.decides().startswith(expected)


def test_attempt_that_is_lost_with_its_container_is_dead_at_once() -> None:
    action = a_run().attempted(an_attempt()).with_pod(a_pod().exited(137)).action()

    assert isinstance(action, EndAttempt)
    assert action.confirmed


def test_attempt_that_lost_its_lock_is_only_presumed_dead() -> None:
    attempt = an_attempt(heartbeat_at=ago(6))
    action = a_run().attempted(attempt).with_pod(a_pod().running()).with_lock_free_for(5).action()

    assert isinstance(action, EndAttempt)
    assert not action.confirmed


def test_cause_that_a_kubelet_tells_later_confirms_the_death() -> None:
    attempt = lost(None, confirmed_at=None, ended_at=ago(1))

    action = a_run().attempted(attempt).with_pod(a_pod().exited(137)).action()

    assert isinstance(action, FillCause)
    assert action.confirmed
