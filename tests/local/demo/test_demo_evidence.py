"""What the demo reads of runs in the database and the API server."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from support.databases import Database, a_run
from triage_contract.database.rows import RunRow, session_params
from triage_local.demo.evidence import see_runs

Json = dict[str, Any]

_LOSE = (
    "UPDATE triage.attempts SET created_at = :created, cause = 'oom', memory_limit_bytes = 1, ended_at = :ended"
    " WHERE run_id = :run AND epoch = 1"
)
_GO_ON = (
    "UPDATE triage.attempts SET created_at = :created, node = 'node-2', first_write_at = :wrote"
    " WHERE run_id = :run AND epoch = 2"
)
_CALL = (
    "INSERT INTO triage.tool_calls (app_name, user_id, session_id, call_id, invocation_id, tool, kind, args, state,"
    " epoch, suppressed_by_tracker) VALUES (:app_name, :user_id, :session_id, 'c', 'inv', 'file_issue',"
    " 'Idempotent', '{}', 'done', 2, 1)"
)
_FILE = "INSERT INTO triage.issues (key, title, body, run_id) VALUES (:key, 't', 'b', :run) RETURNING number"

BEGAN = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def as_object(run: RunRow, **status: Any) -> Json:
    return {"metadata": {"name": run.name, "uid": str(run.id)}, "spec": {}, "status": status}


async def a_recovered_run(database: Database) -> RunRow:
    """A run whose first attempt ended after 10 s, and whose second one wrote after 14."""
    run = a_run()
    await database.open(run)
    await database.close(run, 1)
    await database.open(run, observed_epoch=1)
    await database.values(_LOSE, run=run.id, created=BEGAN, ended=after(10))
    await database.values(_GO_ON, run=run.id, created=after(11), wrote=after(14))
    return run


async def test_a_run_is_seen_with_its_attempts_issue_and_duplicates(database: Database) -> None:
    run = await a_recovered_run(database)
    await database.values(_CALL, **session_params(run.session))
    ((number,),) = await database.values(_FILE, key="mine", run=run.id)
    await database.values(_FILE, key="stray", run=UUID(int=7))
    (seen,), strays = await see_runs(
        database.engine, [as_object(run, phase="Succeeded", issue=str(number))], {run.name: after(9)}, []
    )
    assert (seen.phase, seen.issue, seen.issues) == ("Succeeded", str(number), (str(number),))
    assert seen.causes == ("oom",)
    assert [attempt.node for attempt in seen.attempts] == [None, "node-2"]
    assert seen.suppressed == {"tracker": 1}
    assert seen.recovery_seconds == (5.0,)
    assert strays == 1


async def test_a_loss_that_nobody_caused_counts_from_its_detection(database: Database) -> None:
    run = await a_recovered_run(database)
    (seen,), _ = await see_runs(database.engine, [as_object(run)], {}, [])
    assert seen.phase is None
    assert seen.recovery_seconds == (4.0,)


async def test_a_loss_without_recovery_has_no_seconds(database: Database) -> None:
    run = await a_recovered_run(database)
    await database.values(_GO_ON, run=run.id, created=after(11), wrote=None)
    (seen,), _ = await see_runs(database.engine, [as_object(run)], {}, [])
    assert seen.recovery_seconds == ()


async def test_issues_in_the_file_belong_to_the_run_whose_key_they_have(database: Database) -> None:
    run = await a_recovered_run(database)
    filed: list[Json] = [{"number": 8, "key": f"run-{run.id}/call"}, {"number": 9, "key": None}]
    (seen,), strays = await see_runs(database.engine, [as_object(run)], {}, filed)
    assert seen.issues == ("8",)
    assert strays == 1
