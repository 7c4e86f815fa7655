"""A status that shows more than the database knows."""

from dataclasses import replace

from support.builders import Scenario, a_run, an_attempt, at_work, lost, table
from support.pods import a_pod
from triage_contract.api import AttemptStatus, RunStatus
from triage_contract.states import Cause, Phase
from triage_operator.status import build_status


def _shown(scenario: Scenario, *epochs: int) -> Scenario:
    attempts = tuple(AttemptStatus(epoch=epoch) for epoch in epochs)
    run = scenario.snapshot().run
    return scenario.where(
        run=run.model_copy(update={"status": RunStatus(attempts=attempts, attempt=max(epochs, default=None))})
    )


@table(
    ("a lost status shows nothing", _shown(at_work()), "Wait Running Running"),
    ("a status that is up to date", _shown(at_work(), 1), "Wait Running Running"),
    (
        "a status that is late",
        _shown(a_run().attempted(lost(Cause.DRAIN), an_attempt()).with_pod(a_pod().running()), 1),
        "Wait Recovering Running",
    ),
    ("a status ahead of the rows", _shown(at_work(), 1, 2, 3), "Wait Waiting DatabaseBehind"),
    (
        "a status ahead of a run without an attempt at work",
        _shown(a_run().attempted(lost(Cause.DRAIN)), 1, 2),
        "Wait Waiting DatabaseBehind",
    ),
    ("attempts, and no row", _shown(a_run(), 1), "Wait Waiting DatabaseBehind"),
    (
        "a run can be cancelled all the same",
        _shown(a_run().attempted(lost(Cause.DRAIN)).asking(cancel=True), 1, 2),
        "EndRun cancelled Cancelled",
    ),
)
def test_database_behind_a_status(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_run_that_is_over_stays_so() -> None:
    scenario = _shown(a_run().attempted(lost(Cause.DRAIN)), 1, 2)
    run = scenario.snapshot().run
    status = run.status.model_copy(update={"phase": Phase.SUCCEEDED})
    scenario = scenario.where(run=run.model_copy(update={"status": status}))

    assert scenario.decides() == "Wait Succeeded DatabaseBehind"
    assert build_status(scenario.snapshot(), scenario.action()) == status


def test_status_keeps_what_tells_of_the_newer_database() -> None:
    scenario = _shown(a_run().attempted(lost(Cause.DRAIN)), 1, 2)
    snapshot = scenario.snapshot()

    status = build_status(snapshot, scenario.action())

    assert status is not None
    assert status.attempts == snapshot.run.status.attempts
    assert {one.reason for one in status.conditions} == {"DatabaseBehind"}
    kept = replace(snapshot, run=snapshot.run.model_copy(update={"status": status}))
    assert build_status(kept, scenario.action()) == status
