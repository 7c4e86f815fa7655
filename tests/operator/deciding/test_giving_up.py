"""The budget."""

from dataclasses import replace

from support.builders import Scenario, a_run, ended, lost, table
from support.clock import ago
from support.pods import a_pod
from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome, Verdict

_OLD = ago(900)


def _killed(**fields: object) -> AttemptRow:
    return lost(Cause.SIGKILL, ended_at=_OLD, exit_code=137, **fields)


_DRAINED = lost(Cause.DRAIN, ended_at=_OLD)
_PROGRESSED = _killed(replies=1)
_UNKNOWN = lost(None, ended_at=ago(1))
_RESUMED = "OpenAttempt after {} Resuming 256Mi"


@table(
    ("below the limit", a_run().attempted(_killed(), _killed()), _RESUMED.format(2)),
    ("at the limit", a_run().attempted(_killed(), _killed(), _killed()), "EndRun failed NoProgress"),
    (
        "progress gives it back",
        a_run().attempted(_killed(), _killed(), _PROGRESSED, _killed()),
        _RESUMED.format(4),
    ),
    (
        "an attempt with progress does not count, however it ended",
        a_run().attempted(_killed(), _killed(), _PROGRESSED),
        _RESUMED.format(3),
    ),
    (
        "what the infrastructure did neither counts nor gives it back",
        a_run().attempted(_killed(), _DRAINED, _killed(), _DRAINED, _killed()),
        "EndRun failed NoProgress",
    ),
    (
        "drains alone never use it up",
        a_run().attempted(*[_DRAINED] * 12),
        _RESUMED.format(12),
    ),
    (
        "hand-offs never use it up",
        a_run().attempted(*[ended(Outcome.HANDED_OFF, Cause.SIGTERM)] * 12),
        _RESUMED.format(12),
    ),
    (
        "attempts in all, whatever ended them",
        a_run().resuming(maxAttempts=4).attempted(*[_DRAINED] * 4),
        "EndRun failed TooManyAttempts",
    ),
    (
        "attempts in all, with progress in each",
        a_run().resuming(maxAttempts=2).attempted(_PROGRESSED, _PROGRESSED),
        "EndRun failed TooManyAttempts",
    ),
    (
        "an error that counts, told by its verdict",
        a_run()
        .attempted(*[ended(Outcome.FAILED, Cause.APP_ERROR, counted=True, ended_at=_OLD)] * 3)
        .judged(Verdict.FAILED, error_code="400", error_message="no such model"),
        "EndRun failed ModelError",
    ),
    (
        "a model that is away never uses it up",
        a_run().attempted(*[ended(Outcome.MODEL_UNAVAILABLE, Cause.MODEL_ERROR, ended_at=_OLD)] * 9),
        _RESUMED.format(9),
    ),
    (
        "a database that is away never uses it up",
        a_run().attempted(*[lost(Cause.NO_DATABASE, ended_at=_OLD)] * 9),
        _RESUMED.format(9),
    ),
    (
        "zero: never, whatever ended it",
        a_run().resuming(maxNoProgress=0).attempted(_DRAINED),
        "EndRun failed NoProgress",
    ),
    (
        "zero: never, although there was progress",
        a_run().resuming(maxNoProgress=0).attempted(_PROGRESSED),
        "EndRun failed NoProgress",
    ),
    (
        "zero: never after a hand-off either",
        a_run().resuming(maxNoProgress=0).attempted(ended(Outcome.HANDED_OFF, Cause.SIGTERM)),
        "EndRun failed NoProgress",
    ),
    (
        "zero: an attempt that never began is no resume",
        a_run().resuming(maxNoProgress=0).attempted(lost(Cause.REJECTED, claimed_at=None)),
        _RESUMED.format(1),
    ),
    (
        "zero: one that ended by itself before it began is",
        a_run().resuming(maxNoProgress=0).attempted(lost(Cause.APP_ERROR, claimed_at=None)),
        "EndRun failed NoProgress",
    ),
    (
        "one: the first fruitless attempt is the last",
        a_run().resuming(maxNoProgress=1).attempted(_killed()),
        "EndRun failed NoProgress",
    ),
    (
        "one: a resume after progress is allowed",
        a_run().resuming(maxNoProgress=1).attempted(_PROGRESSED),
        _RESUMED.format(1),
    ),
    (
        "a cause that is not known yet may still save it",
        a_run().resuming(maxNoProgress=1).attempted(_UNKNOWN).with_pod(a_pod().running()),
        "Wait Recovering Lost until +9",
    ),
    (
        "a cause that does not become known saves nothing",
        a_run()
        .resuming(maxNoProgress=1)
        .attempted(replace(_UNKNOWN, ended_at=ago(10)))
        .with_pod(a_pod().running()),
        "EndRun failed NoProgress",
    ),
    (
        "an earlier cause that is not known yet may still save it",
        a_run().attempted(_killed(), _UNKNOWN, _killed()).with_pod(a_pod().running(), epoch=2),
        "Wait Recovering Lost until +9",
    ),
    (
        "a cause that only the database explains is known",
        a_run().resuming(maxNoProgress=0).attempted(lost(None, exit_code=84)),
        "EndRun failed NoProgress",
    ),
)
def test_budget(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_end_for_want_of_progress_names_the_cause_and_the_tool() -> None:
    scenario = a_run().attempted(*[_killed(error="It was killed.")] * 3)

    action = scenario.judged(Verdict.INTERRUPTED, calls=("file_issue",)).action()

    assert action.message == (
        "Attempts in a row that left nothing new: 3; the last one ended with sigkill in file_issue: It was killed."
    )


def test_end_by_the_models_error_has_its_words() -> None:
    scenario = a_run().attempted(*[ended(Outcome.FAILED, Cause.APP_ERROR, counted=True, ended_at=_OLD)] * 3)

    action = scenario.judged(Verdict.FAILED, error_code="400", error_message="no such\nmodel").action()

    assert action.message.endswith("the last one ended with app_error: no such model")


def test_end_at_zero_names_the_setting() -> None:
    action = a_run().resuming(maxNoProgress=0).attempted(_DRAINED).action()

    assert (
        action.message == "resume.maxNoProgress is 0, so nothing is resumed; the last one ended with drain."
    )
