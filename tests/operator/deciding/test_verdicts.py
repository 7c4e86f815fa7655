"""What follows from the verdict, once no attempt is open."""

from support.builders import Scenario, a_call, a_run, ended, lost, table
from support.clock import ago
from triage_contract.states import Cause, Outcome, Verdict
from triage_operator.actions import EndRun

_LOST = a_run().attempted(lost(Cause.DRAIN))


@table(
    ("a new run starts", a_run(), "OpenAttempt after 0 Starting 256Mi"),
    (
        "nothing of it was stored: it starts again",
        _LOST.judged(Verdict.NOT_STARTED),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    ("interrupted: it resumes", _LOST, "OpenAttempt after 1 Resuming 256Mi"),
    ("wedged: it is repaired", _LOST.judged(Verdict.WEDGED), "OpenAttempt after 1 Repaired 256Mi"),
    ("in doubt: a person decides", _LOST.doubting(a_call()), "Wait Waiting InDoubt"),
    ("waiting: a person answers", _LOST.judged(Verdict.WAITING), "Wait Waiting InputRequired"),
    ("finished: it succeeded", _LOST.judged(Verdict.FINISHED), "EndRun succeeded Completed"),
    ("failed: it is tried again", _LOST.judged(Verdict.FAILED), "OpenAttempt after 1 Resuming 256Mi"),
    (
        "failed for good: no attempt could change it",
        _LOST.judged(Verdict.FAILED, sealed=True),
        "EndRun failed Failed",
    ),
    ("aborted: it is never revived", _LOST.judged(Verdict.ABORTED), "EndRun cancelled Aborted"),
    ("unknown: it is refused", _LOST.judged(Verdict.UNKNOWN), "EndRun failed UnknownInvocation"),
    (
        "finished goes before a cancellation",
        _LOST.judged(Verdict.FINISHED).asking(cancel=True),
        "EndRun succeeded Completed",
    ),
    (
        "finished goes before the deadline",
        _LOST.judged(Verdict.FINISHED).asking(deadlineSeconds=1),
        "EndRun succeeded Completed",
    ),
    (
        "finished goes before the budget",
        a_run().resuming(maxNoProgress=0).attempted(lost(Cause.EXIT0_UNFINISHED)).judged(Verdict.FINISHED),
        "EndRun succeeded Completed",
    ),
    ("cancelled", _LOST.asking(cancel=True), "EndRun cancelled Cancelled"),
    ("cancelled before it began", a_run().asking(cancel=True), "EndRun cancelled Cancelled"),
    ("its deadline is over", _LOST.asking(deadlineSeconds=3600), "EndRun failed DeadlineExceeded"),
    (
        "its deadline is over before it began",
        a_run().asking(deadlineSeconds=60).without_agent(),
        "EndRun failed DeadlineExceeded",
    ),
    (
        "it is misconfigured",
        a_run().attempted(ended(Outcome.BAD_CONFIGURATION, Cause.BAD_CONFIG)),
        "EndRun failed BadConfiguration",
    ),
    (
        "its agent does not know the invocation",
        a_run().attempted(ended(Outcome.UNKNOWN_INVOCATION)),
        "EndRun failed UnknownInvocation",
    ),
    (
        "its pod did not start in time",
        a_run().attempted(ended(Outcome.CANCELLED, claimed_at=None)),
        "EndRun failed StartDeadlineExceeded",
    ),
    (
        "its agent is not there yet",
        a_run().without_agent(),
        "Wait Pending UnknownAgent",
    ),
    ("its agent was removed", _LOST.without_agent(), "Wait Recovering UnknownAgent"),
    (
        "its agent's pod template cannot be merged",
        a_run().of_agent(podTemplate={"spec": {"restartPolicy": "Always"}}),
        "Wait Pending BadAgent",
    ),
    (
        "its agent is missing, and its deadline will come",
        a_run().without_agent().asking(deadlineSeconds=3660),
        "Wait Pending UnknownAgent until +60",
    ),
    (
        "all places are taken",
        a_run().of_agent(concurrency={"maxRunning": 2}).where(running=2),
        "Wait Pending Queued",
    ),
    (
        "the places that are free belong to those before it",
        a_run().of_agent(concurrency={"maxRunning": 2}).where(running=1, ahead=1),
        "Wait Pending Queued",
    ),
    (
        "a place is free",
        a_run().of_agent(concurrency={"maxRunning": 2}).where(running=1),
        "OpenAttempt after 0 Starting 256Mi",
    ),
    (
        "a resume needs a place too",
        _LOST.of_agent(concurrency={"maxRunning": 1}).where(running=1),
        "Wait Recovering Queued",
    ),
    (
        "without a limit there is always a place",
        a_run().where(running=500, ahead=500),
        "OpenAttempt after 0 Starting 256Mi",
    ),
)
def test_run_without_an_open_attempt(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_finished_run_has_the_agents_last_word_and_names_its_issue() -> None:
    action = _LOST.judged(Verdict.FINISHED, text="Filed as 41.").filing("41").action()

    assert isinstance(action, EndRun)
    assert (action.message, action.output) == (
        "The agent finished and filed issue 41.",
        "Filed as 41.",
    )


def test_misconfigured_run_says_what_the_attempt_said() -> None:
    attempt = ended(Outcome.BAD_CONFIGURATION, Cause.BAD_CONFIG, error="spec.app: no module named docs")

    assert a_run().attempted(attempt).action().message == "spec.app: no module named docs"


def test_run_that_failed_for_good_says_why() -> None:
    action = _LOST.judged(Verdict.FAILED, sealed=True, error_message="the request is too long").action()

    assert action.message == "Because. the request is too long"


def test_missing_agent_is_named() -> None:
    action = a_run().without_agent().asking(agentRef={"name": "nightly"}).action()

    assert action.message == "There is no TriageAgent docs/nightly."


def test_status_edited_by_hand_changes_nothing() -> None:
    snapshot_run = _LOST.snapshot().run
    edited = snapshot_run.model_copy(
        update={"status": snapshot_run.status.model_copy(update={"phase": "Succeeded", "attempt": 9})}
    )

    assert _LOST.where(run=edited).decides() == _LOST.decides()


def test_decision_is_the_same_however_often_it_is_taken() -> None:
    scenario = a_run().attempted(lost(Cause.SIGKILL, ended_at=ago(1)), lost(Cause.SIGKILL, ended_at=ago(1)))

    assert scenario.action() == scenario.action()
