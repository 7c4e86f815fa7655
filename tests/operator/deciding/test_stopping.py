"""What ends an attempt for its run's sake."""

from support.builders import Scenario, a_run, an_attempt, at_work, table, unclaimed
from support.pods import a_pod
from triage_contract.states import RunState


@table(
    ("cancelled", at_work().asking(cancel=True), "EndAttempt 101 cancelled - Cancelled"),
    (
        "cancelled before the pod started",
        a_run().attempted(unclaimed()).with_pod(a_pod()).asking(cancel=True),
        "EndAttempt 101 cancelled - Cancelled",
    ),
    (
        "cancelled, and lost at the same time",
        at_work().with_pod(a_pod().exited(137)).asking(cancel=True),
        "EndAttempt 101 cancelled - Cancelled",
    ),
    (
        "over its deadline",
        at_work().asking(deadlineSeconds=3600),
        "EndAttempt 101 cancelled - DeadlineExceeded",
    ),
    ("before its deadline", at_work().asking(deadlineSeconds=3610), "Wait Running Running until +10"),
    (
        "of a run that somebody else ended",
        a_run().attempted(an_attempt()).with_pod(a_pod().running()).over(RunState.CANCELLED),
        "EndAttempt 101 cancelled - Cancelled",
    ),
)
def test_attempt_ends_with_its_run(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
