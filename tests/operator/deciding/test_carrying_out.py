"""Decisions of people about calls in doubt."""

from typing import Any

import pytest

from support.builders import Scenario, a_call, a_run, an_attempt, ended, lost, table
from support.pods import a_pod
from triage_contract.states import Cause, Outcome, Verdict
from triage_operator.deciding.carrying_out import ignored

_LOST = a_run().attempted(lost(Cause.SIGKILL))
_PARKED = _LOST.doubting(a_call())


def _decided(
    scenario: Scenario, action: str, *, call: str = "call-1", attempt: int = 1, **more: Any
) -> Scenario:
    return scenario.asking(decisions=[{"call": call, "attempt": attempt, "action": action, **more}])


@table(
    (
        "done, with a result",
        _decided(_PARKED, "Done", result={"id": 7}),
        "CarryOutDecision call-1 of 1 Done {'id': 7}",
    ),
    ("done, without one", _decided(_PARKED, "Done"), "CarryOutDecision call-1 of 1 Done {}"),
    ("run again", _decided(_PARKED, "RunAgain"), "CarryOutDecision call-1 of 1 RunAgain {}"),
    ("fail", _decided(_PARKED, "Fail"), "EndRun failed InDoubt"),
    ("another call is not decided", _decided(_PARKED, "Done", call="call-2"), "Wait Waiting InDoubt"),
    (
        "an earlier attempt's is not either",
        _decided(_LOST.doubting(a_call(epoch=2)), "RunAgain"),
        "Wait Waiting InDoubt",
    ),
    (
        "nor a later one's",
        _decided(_PARKED, "RunAgain", attempt=2),
        "Wait Waiting InDoubt",
    ),
    (
        "a call that ended is over",
        _decided(_LOST.where(journal=(a_call(state="done"),)), "RunAgain"),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "what was let run again is let so once",
        _decided(_LOST.where(journal=(a_call(cleared=True),)), "RunAgain"),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "a mind is changed in time",
        _decided(_LOST.where(journal=(a_call(cleared=True),)), "Done"),
        "CarryOutDecision call-1 of 1 Done {}",
    ),
    (
        "while an attempt is open it waits",
        _decided(a_run().attempted(an_attempt()).with_pod(a_pod().running()), "Done"),
        "Wait Running Running",
    ),
    (
        "a suspended run takes it in, and stays suspended",
        _decided(_PARKED, "Done").asking(suspend=True),
        "CarryOutDecision call-1 of 1 Done {}",
    ),
    (
        "it goes before the outside world is asked",
        _decided(
            a_run().attempted(ended(Outcome.IN_DOUBT)).doubting(a_call(tool="charge", kind="Reconcile")),
            "Done",
        ),
        "CarryOutDecision call-1 of 1 Done {}",
    ),
    (
        "a finished run is finished",
        _decided(_LOST.judged(Verdict.FINISHED), "Fail"),
        "EndRun succeeded Completed",
    ),
)
def test_decisions(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (_decided(_PARKED, "Done"), None),
        (_decided(_LOST, "Done"), "no call call-1 is journaled."),
        (
            _decided(_PARKED, "Done", attempt=3),
            "call call-1 was begun by attempt 1, not 3.",
        ),
        (
            _decided(_LOST.where(journal=(a_call(state="done"),)), "Done"),
            "call call-1 of send_mail is done, not in doubt.",
        ),
        (_decided(_LOST.where(journal=(a_call(state="settled", decided=True),)), "Done"), None),
        (_decided(_LOST.where(journal=(a_call(cleared=True),)), "RunAgain"), None),
        (_decided(_LOST.where(journal=(a_call(epoch=2),)), "RunAgain"), None),
        (_decided(a_run(), "Done"), None),
    ],
)
def test_decision_that_does_nothing_is_told(scenario: Scenario, why: str | None) -> None:
    assert [said for _, said in ignored(scenario.snapshot())] == ([] if why is None else [why])


def test_run_that_a_person_failed_says_so() -> None:
    action = _decided(_PARKED, "Fail").action()

    assert action.message == (
        "A person decided that the run fails, about call call-1 of send_mail, begun by attempt 1."
    )
