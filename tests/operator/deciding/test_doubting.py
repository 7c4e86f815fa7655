"""Calls in doubt: who settles them, and when."""

from support.builders import Scenario, a_call, a_run, ended, lost, table
from support.clock import ago
from support.pods import a_pod
from triage_contract.states import Cause, Outcome
from triage_contract.verdict import Remedy
from triage_operator.actions import Wait

_LOST = a_run().attempted(lost(Cause.SIGKILL))
_PRESUMED = a_run().attempted(lost(None, confirmed_at=None, ended_at=ago(1)))
_ASKED = a_call(tool="charge", kind="Reconcile")


@table(
    ("parked: the run waits, and has no pod", _LOST.doubting(a_call()), "Wait Waiting InDoubt"),
    ("the agent wants it to fail", _LOST.doubting(a_call(), remedy=Remedy.FAIL), "EndRun failed InDoubt"),
    (
        "its outside world is asked by the next attempt",
        _LOST.doubting(_ASKED, remedy=Remedy.ASK),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "one that asked in vain is no reason to wait longer",
        a_run().attempted(ended(Outcome.IN_DOUBT)).doubting(_ASKED, remedy=Remedy.ASK),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "a kubelet has a moment to say that the process is dead",
        _PRESUMED.with_pod(a_pod().running()).doubting(_ASKED, remedy=Remedy.ASK),
        "Wait Recovering Lost until +1.5",
    ),
    (
        "a kubelet that says nothing holds nobody up",
        a_run()
        .attempted(lost(None, confirmed_at=None, ended_at=ago(3)))
        .with_pod(a_pod().running())
        .doubting(_ASKED, remedy=Remedy.ASK),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "a pod that is gone says nothing",
        a_run().attempted(lost(Cause.VANISHED, confirmed_at=None)).doubting(_ASKED, remedy=Remedy.ASK),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "a parked call that waits for evidence has its node looked at again",
        a_run().attempted(lost(Cause.VANISHED, confirmed_at=None)).doubting(_ASKED),
        "Wait Waiting InDoubt until +30",
    ),
    (
        "no evidence can free an undeclared one",
        a_run().attempted(lost(Cause.VANISHED, confirmed_at=None)).doubting(a_call()),
        "Wait Waiting InDoubt",
    ),
    (
        "a parked run is not given up for want of progress",
        a_run().attempted(*[lost(Cause.SIGKILL, ended_at=ago(900))] * 3).doubting(a_call()),
        "Wait Waiting InDoubt",
    ),
    (
        "the user's will goes before: cancelled",
        _LOST.doubting(a_call()).asking(cancel=True),
        "EndRun cancelled Cancelled",
    ),
    (
        "the user's will goes before: suspended",
        _LOST.doubting(a_call()).asking(suspend=True),
        "Wait Suspended Suspended",
    ),
    (
        "a parked run is too late in the end",
        _LOST.doubting(a_call()).asking(deadlineSeconds=60),
        "EndRun failed DeadlineExceeded",
    ),
)
def test_calls_in_doubt(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_parked_run_says_what_can_be_decided() -> None:
    action = _LOST.doubting(a_call()).action()

    assert isinstance(action, Wait)
    assert action.message == (
        "Begun, and not known to have happened: call call-1 of send_mail, attempt 1. Decide in spec.decisions."
    )


def test_failed_run_names_the_tool_and_the_setting() -> None:
    action = _LOST.doubting(a_call(), remedy=Remedy.FAIL).action()

    assert action.message == "Because. The agent's resume.inDoubt is Fail."
