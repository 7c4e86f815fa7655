"""Runs that are over."""

from support.builders import Scenario, a_run, ended, table
from support.clock import ago
from triage_contract.states import Outcome, RunState
from triage_operator.actions import EndRun
from triage_operator.reasons import Reason

_SUCCEEDED = (
    a_run().attempted(ended(Outcome.FINISHED)).over(RunState.SUCCEEDED, "Completed: The agent finished.")
)


@table(
    ("it stays", _SUCCEEDED, "Wait Succeeded Completed"),
    (
        "its reason stays",
        a_run().over(RunState.FAILED, "NoProgress: Three attempts."),
        "Wait Failed NoProgress",
    ),
    ("ended by somebody else", a_run().over(RunState.FAILED, "by hand"), "Wait Failed Failed"),
    ("ended without a word", a_run().over(RunState.CANCELLED), "Wait Cancelled Cancelled"),
    (
        "it goes when its time is over",
        _SUCCEEDED.over(RunState.SUCCEEDED, at=ago(60)).asking(ttlSecondsAfterFinished=60),
        "DeleteRun Expired",
    ),
    (
        "it stays until then",
        _SUCCEEDED.over(RunState.SUCCEEDED, at=ago(50)).asking(ttlSecondsAfterFinished=60),
        "Wait Succeeded Completed until +10",
    ),
    ("it may go at once", _SUCCEEDED.asking(ttlSecondsAfterFinished=0), "DeleteRun Expired"),
    (
        "neither its deadline nor a cancellation matter",
        _SUCCEEDED.asking(cancel=True, deadlineSeconds=1),
        "Wait Succeeded Completed",
    ),
)
def test_run_that_is_over(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_what_is_recorded_at_the_end_is_what_is_shown_later() -> None:
    ending = EndRun(
        reason=Reason.NO_PROGRESS, message="Three attempts: all in vain.", state=RunState.FAILED, output=None
    )

    later = a_run().over(ending.state, ending.recorded).action()

    assert (later.reason, later.message) == (ending.reason, ending.message)
