"""``suspend``."""

from support.builders import Scenario, a_run, an_attempt, at_work, ended, podless, table, unclaimed
from support.clock import ago
from support.pods import a_pod
from triage_contract.states import Cause, Outcome, Verdict

_SUSPENDED = a_run().attempted(ended(Outcome.HANDED_OFF, Cause.SUSPENDED))
_ASKED = a_run().attempted(an_attempt(handoff_requested_at=ago(1), handoff_reason="suspended"))


@table(
    (
        "the attempt at work is asked to hand off",
        at_work().asking(suspend=True),
        "RequestHandoff 101 suspended",
    ),
    (
        "it is asked once",
        _ASKED.with_pod(a_pod().running()).asking(suspend=True),
        "Wait Running HandingOff",
    ),
    (
        "one that is asked and then lost is lost",
        _ASKED.with_pod(a_pod().exited(137)).asking(suspend=True),
        "EndAttempt 101 lost sigkill Lost exit 137 counted",
    ),
    (
        "an attempt whose pod has not started ends",
        a_run().attempted(unclaimed()).with_pod(a_pod().unschedulable()).asking(suspend=True),
        "EndAttempt 101 handed_off suspended Suspended",
    ),
    (
        "an attempt gets no pod any more",
        a_run().attempted(podless()).asking(suspend=True),
        "EndAttempt 101 handed_off suspended Suspended",
    ),
    ("no attempt starts", a_run().asking(suspend=True), "Wait Suspended Suspended"),
    ("no attempt follows", _SUSPENDED.asking(suspend=True), "Wait Suspended Suspended"),
    (
        "a deadline goes on",
        _SUSPENDED.asking(suspend=True, deadlineSeconds=3660),
        "Wait Suspended Suspended until +60",
    ),
    (
        "a deadline that is over fails the run",
        _SUSPENDED.asking(suspend=True, deadlineSeconds=60),
        "EndRun failed DeadlineExceeded",
    ),
    (
        "what is finished succeeded",
        _SUSPENDED.asking(suspend=True).judged(Verdict.FINISHED),
        "EndRun succeeded Completed",
    ),
    ("a cancellation ends it", _SUSPENDED.asking(suspend=True, cancel=True), "EndRun cancelled Cancelled"),
    ("taken back, the run goes on at once", _SUSPENDED, "OpenAttempt after 1 Resuming 256Mi"),
)
def test_suspended_run_has_no_attempt(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
