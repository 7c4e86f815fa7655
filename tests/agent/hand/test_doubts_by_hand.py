"""Calls in doubt of a run by hand: on Postgres it names them, and the person decides."""

from collections.abc import Awaitable, Callable

import pytest

from support.databases import Database
from triage_agent.docs_triage.samples import report
from triage_contract.states import ExitCode

from .conftest import Hand

Crash = Callable[[], Awaitable[tuple[tuple[str, str], str]]]

on_postgres = pytest.mark.parametrize("hand", ["postgres"], indirect=True)


@pytest.fixture
def crash(hand: Hand, database: Database) -> Crash:
    """Lose a run in a call of which nobody declared what a repeat does; gives its ids and the call's."""

    async def crash() -> tuple[tuple[str, str], str]:
        crashed = await hand.run(
            "start", "--crash-after-write", "--tracker", "file:issues.json", report("tokens")
        )
        assert crashed.code == 137
        ((call,),) = await database.values(
            "UPDATE triage.tool_calls SET kind = 'Undeclared' WHERE state = 'begun' RETURNING function_call_id"
        )
        session, invocation = crashed.ids
        return (session, invocation), str(call)

    return crash


@on_postgres
async def test_a_call_in_doubt_is_named_with_what_can_be_done_about_it(hand: Hand, crash: Crash) -> None:
    ids, call = await crash()
    refused = await hand.run("resume", *ids)
    assert refused.code == ExitCode.IN_DOUBT
    assert refused.err == (
        f"triage: invocation '{ids[1]}' is in doubt: file_issue (call {call}) may have happened; `triage resume`"
        " with `--done CALL=JSON` gives its result, with `--in-doubt retry` runs it again, with `--in-doubt fail`"
        " gives the run up\n"
    )
    assert refused.out == ""
    assert await hand.rows("SELECT state FROM triage.runs") == [("active",)]


@on_postgres
async def test_the_result_that_a_person_gives_is_the_calls(hand: Hand, crash: Crash) -> None:
    ids, call = await crash()
    resumed = await hand.run("resume", *ids, "--done", call + '={"number": 12}')
    assert resumed.code == 0, resumed.err
    assert 'file_issue returned {"number": 12}' in resumed.out
    assert await hand.rows("SELECT state, settled_by FROM triage.tool_calls WHERE tool = 'file_issue'") == [
        ("settled", "decision")
    ]


@on_postgres
async def test_told_to_retry_it_runs_the_call_again(hand: Hand, crash: Crash) -> None:
    ids, _ = await crash()
    resumed = await hand.run("resume", *ids, "--in-doubt", "retry", "--tracker", "file:issues.json")
    assert resumed.code == 0, resumed.err
    assert '"duplicate_request": true' in resumed.out
    assert await hand.rows("SELECT begun_times FROM triage.tool_calls WHERE tool = 'file_issue'") == [(2,)]


@on_postgres
async def test_told_to_fail_it_gives_the_run_up(hand: Hand, crash: Crash) -> None:
    ids, call = await crash()
    given_up = await hand.run("resume", *ids, "--in-doubt", "fail")
    assert given_up.code == ExitCode.IN_DOUBT
    assert given_up.err == (
        f"triage: invocation '{ids[1]}' is given up: file_issue (call {call}) may have happened\n"
    )
    assert await hand.rows("SELECT state FROM triage.runs") == [("failed",)]


@on_postgres
@pytest.mark.parametrize(
    ("done", "says"),
    [
        ("adk-unknown={}", "call 'adk-unknown' is not in doubt"),
        ("adk-unknown", "--done is 'adk-unknown', not CALL=JSON with a JSON object"),
        ("adk-unknown=7", "--done is 'adk-unknown=7', not CALL=JSON with a JSON object"),
    ],
)
async def test_a_result_that_belongs_to_no_call_is_refused(
    hand: Hand, crash: Crash, done: str, says: str
) -> None:
    ids, _ = await crash()
    refused = await hand.run("resume", *ids, "--done", done)
    assert (refused.code, refused.err) == (1, f"triage: {says}\n")


@pytest.mark.parametrize("hand", ["sqlite"], indirect=True)
async def test_on_sqlite_nothing_is_known_to_be_in_doubt(hand: Hand) -> None:
    refused = await hand.run("resume", "run-1", "inv-1", "--in-doubt", "retry")
    assert refused.code == 1
    assert refused.err == "triage: --in-doubt and --done need Postgres: SQLite keeps no journal of calls\n"
