"""When the next attempt starts."""

import pytest

from support.builders import RUN_UID, Scenario, a_run, ended, lost, table
from support.clock import NOW, ago
from triage_contract.api.agent import Backoff
from triage_contract.states import Cause, Outcome, Phase, Verdict
from triage_operator.actions import Wait
from triage_operator.backing_off import JITTER, ready_at, resumes_in_a_row
from triage_operator.reasons import Reason

_KILLED = lost(Cause.SIGKILL, exit_code=137)
_PROGRESSED = lost(Cause.SIGKILL, exit_code=137, replies=1)
_HANDED_OFF = ended(Outcome.HANDED_OFF, Cause.DRAIN)
_BUSY = ended(Outcome.MODEL_UNAVAILABLE, Cause.MODEL_ERROR, retry_after_seconds=40.0)
_RESUMED = "OpenAttempt after {} Resuming 256Mi"


@table(
    ("the first resume is at once", a_run().attempted(_KILLED), _RESUMED.format(1)),
    (
        "the first after progress is at once",
        a_run().attempted(_KILLED, _KILLED, _PROGRESSED),
        _RESUMED.format(3),
    ),
    ("a hand-off is followed at once", a_run().attempted(_KILLED, _KILLED, _HANDED_OFF), _RESUMED.format(3)),
    (
        "a model's wish is kept, also at the first resume",
        a_run().attempted(_BUSY).judged(Verdict.FAILED),
        "Wait Recovering ModelUnavailable until +40",
    ),
    (
        "a model's wish that is over",
        a_run().attempted(ended(Outcome.MODEL_UNAVAILABLE, retry_after_seconds=40.0, ended_at=ago(40))),
        _RESUMED.format(1),
    ),
    (
        "a model's wish has a limit",
        a_run().attempted(ended(Outcome.MODEL_UNAVAILABLE, retry_after_seconds=1e12)),
        "Wait Recovering ModelUnavailable until +3600",
    ),
    (
        "a deadline comes before the end of the wait",
        a_run().attempted(_BUSY).asking(deadlineSeconds=3610),
        "Wait Recovering ModelUnavailable until +10",
    ),
)
def test_pause(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_second_resume_in_a_row_waits() -> None:
    action = a_run().attempted(_KILLED, _KILLED).action()

    assert isinstance(action, Wait)
    assert (action.phase, action.reason) == (Phase.RECOVERING, Reason.BACKING_OFF)
    assert action.until is not None
    assert 2 * (1 - JITTER) <= (action.until - NOW).total_seconds() <= 2


@pytest.mark.parametrize(
    ("attempts", "resume"),
    [
        ([_KILLED], 1),
        ([_KILLED, _KILLED], 2),
        ([_PROGRESSED], 1),
        ([_PROGRESSED, _KILLED], 2),
        ([_KILLED, _KILLED, _PROGRESSED, _KILLED], 2),
        ([_PROGRESSED, _HANDED_OFF, _KILLED], 2),
        ([_HANDED_OFF], 0),
    ],
)
def test_resumes_in_a_row_count_from_the_last_progress(attempts: list[object], resume: int) -> None:
    rows = a_run().attempted(*attempts).rows  # type: ignore[arg-type]

    assert resumes_in_a_row(rows) == resume


@pytest.mark.parametrize(
    ("attempts", "longest"), [(1, 0), (2, 5), (3, 15), (4, 45), (5, 60), (6, 60), (900, 60)]
)
def test_waits_grow_up_to_the_longest(attempts: int, longest: float) -> None:
    rows = a_run().attempted(*[_KILLED] * attempts).rows

    ready = ready_at(RUN_UID, rows, Backoff(initial_seconds=5, max_seconds=60, factor=3), 3600)

    assert ready is not None
    assert longest * (1 - JITTER) <= (ready - NOW).total_seconds() <= longest


def test_runs_that_were_lost_together_do_not_come_back_together() -> None:
    rows = a_run().attempted(_KILLED, _KILLED).rows

    ready = {ready_at(f"{RUN_UID[:-1]}{digit}", rows, Backoff(), 3600) for digit in range(8)}

    assert len(ready) == 8
