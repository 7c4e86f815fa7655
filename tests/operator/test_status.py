"""The status of a run."""

from dataclasses import replace
from typing import Any

import pytest

from support.builders import (
    MEBIBYTE,
    RUN_UID,
    Scenario,
    a_run,
    an_attempt,
    at_work,
    ended,
    lost,
    podless,
    unclaimed,
)
from support.clock import NOW, ago, ahead
from support.pods import a_pod
from triage_contract.api import RunStatus, TriageRun, parse_run
from triage_contract.api.run import ATTEMPTS_KEPT, MAX_MESSAGE_LENGTH, MAX_OUTPUT_LENGTH
from triage_contract.states import Cause, Outcome, Phase, RunState, Verdict
from triage_operator.actions import Wait
from triage_operator.snapshot import CallCounts
from triage_operator.status import build_status

_SUCCEEDED = (
    a_run()
    .attempted(ended(Outcome.FINISHED))
    .over(RunState.SUCCEEDED, "Completed: The agent finished.")
    .judged(Verdict.FINISHED, text="Filed as 41.")
)


def _status(scenario: Scenario) -> RunStatus:
    status = build_status(scenario.snapshot(), scenario.action())
    assert status is not None
    return status


def _conditions(scenario: Scenario) -> dict[str, tuple[str, str]]:
    return {item.type: (item.status.value, item.reason) for item in _status(scenario).conditions}


def _stored(scenario: Scenario) -> TriageRun:
    """Give the run as the API server has it once the status is written."""
    run = scenario.snapshot().run
    return parse_run({**run.to_json(), "status": _status(scenario).to_json()})


@pytest.mark.parametrize(
    ("scenario", "phase", "finished", "progressing"),
    [
        pytest.param(at_work(), "Running", ("False", "Running"), ("True", "Running"), id="at work"),
        pytest.param(
            a_run().attempted(unclaimed()).with_pod(a_pod().unschedulable()),
            "Pending",
            ("False", "Unschedulable"),
            ("False", "Unschedulable"),
            id="without a node",
        ),
        pytest.param(
            a_run()
            .attempted(lost(Cause.OOM), an_attempt())
            .with_pod(a_pod().running())
            .with_pod(a_pod().exited(137), epoch=1),
            "Recovering",
            ("False", "Running"),
            ("True", "Running"),
            id="resumed",
        ),
        pytest.param(
            a_run().attempted(lost(Cause.SIGKILL, exit_code=137), lost(Cause.SIGKILL, exit_code=137)),
            "Recovering",
            ("False", "BackingOff"),
            ("True", "BackingOff"),
            id="backing off",
        ),
        pytest.param(
            a_run().attempted(lost(Cause.DRAIN)).judged(Verdict.WAITING),
            "Waiting",
            ("False", "InputRequired"),
            ("False", "InputRequired"),
            id="waiting for a person",
        ),
        pytest.param(
            a_run().asking(suspend=True),
            "Suspended",
            ("False", "Suspended"),
            ("False", "Suspended"),
            id="suspended",
        ),
        pytest.param(
            a_run().without_agent(),
            "Pending",
            ("False", "UnknownAgent"),
            ("False", "UnknownAgent"),
            id="without an agent",
        ),
        pytest.param(
            a_run().of_agent(concurrency={"maxRunning": 1}).where(running=1),
            "Pending",
            ("False", "Queued"),
            ("True", "Queued"),
            id="queued",
        ),
        pytest.param(_SUCCEEDED, "Succeeded", ("True", "Completed"), ("False", "Completed"), id="succeeded"),
        pytest.param(
            a_run().attempted(*[lost(Cause.SIGKILL, ended_at=ago(900), exit_code=137)] * 3),
            "Failed",
            ("True", "NoProgress"),
            ("False", "NoProgress"),
            id="given up just now",
        ),
        pytest.param(
            a_run().asking(cancel=True),
            "Cancelled",
            ("True", "Cancelled"),
            ("False", "Cancelled"),
            id="cancelled just now",
        ),
    ],
)
def test_phase_and_conditions(
    scenario: Scenario, phase: str, finished: tuple[str, str], progressing: tuple[str, str]
) -> None:
    assert _status(scenario).phase == phase
    assert _conditions(scenario) == {"Finished": finished, "Progressing": progressing}


@pytest.mark.parametrize(
    "scenario",
    [
        a_run(),
        a_run().attempted(podless()),
        at_work().with_pod(a_pod().exited(137)),
        at_work().asking(suspend=True),
        a_run().attempted(lost(Cause.UNRESPONSIVE)).with_pod(a_pod().running()),
    ],
)
def test_action_that_another_follows_at_once_writes_no_status(scenario: Scenario) -> None:
    assert not isinstance(scenario.action(), Wait)
    assert build_status(scenario.snapshot(), scenario.action()) is None


def test_status_tells_the_runs_history() -> None:
    calls = CallCounts(begun=3, done=2, suppressed_by_journal=1, suppressed_by_tracker=1)
    scenario = (
        a_run()
        .attempted(
            lost(Cause.OOM, lost_at=ago(20), ended_at=ago(20), exit_code=137, error="Out of memory."),
            an_attempt(first_write_at=ago(18.25), memory_limit_bytes=384 * MEBIBYTE, pod="run-a2"),
        )
        .with_pod(a_pod().exited(137), epoch=1)
        .with_pod(a_pod().running())
        .filing("41")
        .where(calls=calls)
    )

    status = _status(scenario).to_json()

    status.pop("conditions")
    assert status == {
        "phase": "Recovering",
        "observedGeneration": 1,
        "session": f"run-{RUN_UID}",
        "invocationId": f"inv-{RUN_UID}",
        "attempt": 2,
        "attempts": [
            {
                "epoch": 1,
                "pod": "run-a1",
                "node": "node-a",
                "image": "docs-triage:1",
                "cause": "oom",
                "outcome": "lost",
                "memoryLimit": "256Mi",
                "startedAt": "2026-03-01T11:58:55Z",
                "endedAt": "2026-03-01T11:59:40Z",
                "message": "Out of memory.",
            },
            {
                "epoch": 2,
                "pod": "run-a2",
                "node": "node-a",
                "image": "docs-triage:1",
                "memoryLimit": "384Mi",
                "startedAt": "2026-03-01T11:58:55Z",
            },
        ],
        "resumes": 1,
        "noProgress": 0,
        "toolCalls": {"begun": 3, "done": 2, "suppressed": 2},
        "waitingFor": [],
        "lastCause": "oom",
        "recoverySeconds": 1.75,
        "issue": "41",
    }


def test_new_run_has_no_history() -> None:
    status = _status(a_run().without_agent()).to_json()

    status.pop("conditions")
    assert status == {
        "phase": "Pending",
        "observedGeneration": 1,
        "attempts": [],
        "resumes": 0,
        "noProgress": 0,
        "toolCalls": {"begun": 0, "done": 0, "suppressed": 0},
        "waitingFor": [],
    }


def test_output_is_there_once_the_run_succeeded() -> None:
    ending = a_run().attempted(ended(Outcome.FINISHED)).judged(Verdict.FINISHED, text="Filed as 41.")

    assert _status(ending).output == _status(_SUCCEEDED).output == "Filed as 41."
    assert _status(at_work().judged(Verdict.INTERRUPTED, text="I shall look.")).output is None


def test_what_the_end_wrote_is_what_stays() -> None:
    ending = a_run().attempted(ended(Outcome.FINISHED)).judged(Verdict.FINISHED, text="Filed as 41.")

    later = ending.over(RunState.SUCCEEDED, "Completed: The agent finished.").where(run=_stored(ending))

    assert _status(replace(later, now=ahead(60))) == _stored(ending).status


@pytest.mark.parametrize("scenario", [at_work(), _SUCCEEDED, a_run().without_agent()])
def test_status_that_says_nothing_new_equals_the_one_that_stands(scenario: Scenario) -> None:
    stored = _stored(scenario)

    assert _status(replace(scenario.where(run=stored), now=ahead(1))) == stored.status


def test_condition_keeps_the_time_of_its_last_change() -> None:
    waiting = replace(a_run().without_agent(), now=ago(60))
    stored = _stored(waiting)

    times: dict[str, Any] = {
        item.type: item.last_transition_time for item in _status(at_work().where(run=stored)).conditions
    }

    assert times == {"Finished": ago(60), "Progressing": NOW}


def test_status_edited_by_hand_is_written_again() -> None:
    stored = _stored(at_work())
    edited = stored.model_copy(update={"status": RunStatus(phase=Phase.SUCCEEDED, resumes=9, issue="666")})

    status = _status(at_work().where(run=edited))

    assert (status.phase, status.resumes, status.issue) == (Phase.RUNNING, 0, None)


def test_status_is_bounded() -> None:
    attempts = [lost(Cause.DRAIN, error="x" * 5000, ended_at=ago(900))] * 14
    scenario = a_run().attempted(*attempts).judged(Verdict.FINISHED, text="y" * 100_000)

    status = _status(scenario)

    assert [attempt.epoch for attempt in status.attempts] == list(range(5, 15))
    assert len(status.attempts) == ATTEMPTS_KEPT
    assert {len(attempt.message or "") for attempt in status.attempts} == {MAX_MESSAGE_LENGTH}
    assert len(status.output or "") == MAX_OUTPUT_LENGTH


@pytest.mark.parametrize(
    ("attempts", "resumes"),
    [
        ([an_attempt()], 0),
        ([lost(Cause.DRAIN), an_attempt()], 1),
        ([lost(Cause.REJECTED, claimed_at=None), an_attempt()], 0),
        ([lost(Cause.REJECTED, claimed_at=None), lost(Cause.DRAIN), an_attempt()], 1),
        ([lost(Cause.REJECTED, claimed_at=None), unclaimed()], 0),
    ],
)
def test_only_work_that_began_is_resumed(attempts: list[Any], resumes: int) -> None:
    scenario = a_run().attempted(*attempts)

    status = build_status(scenario.snapshot(), scenario.with_pod(a_pod().running(ago(5))).action())

    assert status is not None
    assert status.resumes == resumes
