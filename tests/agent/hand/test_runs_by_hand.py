"""`triage start` and `triage resume`, on Postgres and on SQLite."""

import asyncio
import os
import signal
import sqlite3
from pathlib import Path

import pytest
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai import types

from support.databases import Database
from support.stage import Reply, ScriptedLlm, call
from triage_agent.docs_triage.agent import compose_app
from triage_agent.docs_triage.folder import PageFolder
from triage_agent.docs_triage.samples import PAGES, report
from triage_agent.docs_triage.tools import DocsTools
from triage_agent.hand.sqlite import LIMITS
from triage_agent.trackers.file import FileTracker
from triage_contract.names import DocsEnv
from triage_local.model.faults import Fault

from .conftest import Hand

REPORT = report("tokens")


async def test_a_run_prints_its_ids_and_then_its_events(hand: Hand) -> None:
    ended = await hand.run("start", REPORT)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith("session run-")
    assert lines[1].startswith("invocation inv-")
    assert lines[2] == "docs_triage: calls list_pages({})"
    assert lines[3].startswith("docs_triage: list_pages returned {")
    assert lines[-2].startswith("docs_triage: Filed as issue 1")
    assert lines[-1] == "docs_triage: ended"
    assert len(ended.err.splitlines()) == (1 if hand.kind == "sqlite" else 0)
    assert await hand.issues() == [0]


async def test_events_are_printed_as_they_come(hand: Hand) -> None:
    hand.model.faults.add(Fault(hang=True, step="read_page"))
    command = hand.begin("start", REPORT)
    while len(hand.model.requests) < 2:
        await asyncio.sleep(0.01)
    (output,) = hand.folder.glob(".output-*")
    assert "list_pages returned" in (output / "out").read_text()
    hand.model.faults.release()
    assert (await command.ended()).code == 0


async def test_a_crash_after_the_write_is_made_good_by_a_resume(hand: Hand) -> None:
    crashed = await hand.run("start", "--crash-after-write", REPORT)
    assert crashed.code == 137
    assert "calls file_issue" in crashed.out.splitlines()[-1]
    assert await hand.rows("SELECT count(*) FROM events") == [(6,)]  # up to the call

    resumed = await hand.run("resume", *crashed.ids)
    assert resumed.code == 0, resumed.err
    # On Postgres the journal has the result: the tracker files in its transaction.
    is_asked_again = hand.kind == "sqlite"
    assert ('"duplicate_request": true' in resumed.out) == is_asked_again
    assert "calls file_issue" not in resumed.out
    assert await hand.issues() == [int(is_asked_again)]


async def test_without_the_key_the_issue_is_filed_twice(hand: Hand) -> None:
    crashed = await hand.run("start", "--crash-after-write", "--no-idempotency-key", REPORT)
    assert crashed.code == 137
    resumed = await hand.run("resume", "--no-idempotency-key", *crashed.ids)
    assert resumed.code == 0, resumed.err
    assert "duplicate_request" not in resumed.out
    assert await hand.issues() == [0, 0]


async def test_what_needs_no_resume_is_refused_in_one_line(hand: Hand) -> None:
    session, invocation = (await hand.run("start", REPORT)).ids
    events = await hand.rows("SELECT count(*) FROM events")
    refusals = {
        ("run-unknown", invocation): "triage: there is no session 'run-unknown'",
        (session, "inv-unknown"): f"triage: invocation 'inv-unknown' is not in session '{session}'",
        (
            session,
            invocation,
        ): f"triage: invocation '{invocation}' is already finished: The end marker is stored.",
    }
    for ids, line in refusals.items():
        refused = await hand.run("resume", *ids)
        assert (refused.code, refused.out, refused.err) == (1, "", f"{line}\n")
    assert await hand.rows("SELECT count(*) FROM events") == events
    assert len(hand.model.requests) == 4


async def test_a_model_that_refuses_is_one_line_and_the_run_can_go_on(hand: Hand) -> None:
    hand.model.faults.add(Fault(status=429, retry_after_seconds=9, step="file_issue"))
    failed = await hand.run("start", REPORT)
    assert failed.code == 1
    *others, line = failed.err.splitlines()
    assert line.startswith("triage: the model answered 429: RESOURCE_EXHAUSTED: ")
    assert others == ([LIMITS] if hand.kind == "sqlite" else [])
    resumed = await hand.run("resume", *failed.ids)
    assert resumed.code == 0, resumed.err
    assert await hand.issues() == [0]


async def test_settings_come_from_the_environment_or_from_options(hand: Hand, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "tokens.md").write_text("# Tokens\n\nNothing.\n")
    tracker = f"file:{tmp_path}/elsewhere.json"
    ended = await hand.run("start", REPORT, **{DocsEnv.PATH: str(pages), DocsEnv.TRACKER: tracker})
    assert '{"pages": [{"name": "tokens", "title": "Tokens"}]}' in ended.out
    assert (tmp_path / "elsewhere.json").exists()
    ended = await hand.run("start", "--docs", "/nowhere", REPORT, **{DocsEnv.PATH: str(pages)})
    assert ended.code == 1
    assert "/nowhere" in ended.err
    ended = await hand.run("start", "--tracker", "jira", REPORT, **{DocsEnv.TRACKER: tracker})
    assert ended.code == 1
    assert "'jira'" in ended.err


@pytest.mark.parametrize("hand", ["postgres"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_run_that_is_stopped_says_how_it_goes_on(hand: Hand, number: signal.Signals) -> None:
    hand.model.faults.add(Fault(hang=True, step="file_issue"))
    command = hand.begin("start", REPORT)
    while len(hand.model.requests) < 3:
        await asyncio.sleep(0.01)
    assert command.process.pid is not None
    os.kill(command.process.pid, number)
    ended = await command.ended()
    session, invocation = ended.ids
    assert ended.code == 1
    assert ended.err == f"triage: stopped; `triage resume {session} {invocation}` goes on\n"
    assert (await hand.run("resume", session, invocation)).code == 0
    assert await hand.issues() == [0]


@pytest.mark.parametrize("hand", ["postgres"], indirect=True)
async def test_a_resume_takes_a_live_run_over(hand: Hand) -> None:
    hand.model.faults.add(Fault(hang=True, step="file_issue"))
    command = hand.begin("start", REPORT)
    while len(hand.model.requests) < 3:
        await asyncio.sleep(0.01)
    (output,) = hand.folder.glob(".output-*")
    first, second, *_ = (output / "out").read_text().splitlines()
    resumed = await hand.run("resume", first.removeprefix("session "), second.removeprefix("invocation "))
    assert resumed.code == 0, resumed.err
    hand.model.faults.release()
    ended = await command.ended()
    assert ended.code == 1
    assert len(ended.err.splitlines()) == 1
    assert await hand.issues() == [0]


@pytest.mark.parametrize("hand", ["postgres"], indirect=True)
async def test_a_session_that_adk_made_alone_can_be_resumed(hand: Hand, tmp_path: Path) -> None:
    def first_call(_request: LlmRequest) -> list[Reply]:
        return [call("list_pages", "call_0")]

    tools = DocsTools(folder=PageFolder(PAGES), tracker=FileTracker(tmp_path / "issues.json"))
    app = compose_app(ScriptedLlm(script=first_call), tools)
    service = DatabaseSessionService(hand.url.replace("postgresql:", "postgresql+asyncpg:"))
    await service.create_session(app_name="their_app", user_id="them", session_id="theirs")
    message = types.Content(role="user", parts=[types.Part(text=REPORT)])
    runner = Runner(app=app, app_name="their_app", session_service=service)
    events = runner.run_async(user_id="them", session_id="theirs", new_message=message)
    invocation = (await anext(events)).invocation_id
    await events.aclose()
    await service.close()

    resumed = await hand.run("resume", "theirs", invocation)
    assert resumed.code == 0, resumed.err
    assert await hand.issues() == [0]
    refused = await hand.run("resume", "theirs", invocation)
    assert (refused.code, "already finished" in refused.err) == (1, True)


@pytest.mark.parametrize("hand", ["postgres"], indirect=True)
async def test_a_finished_session_that_adk_made_alone_is_refused(hand: Hand, database: Database) -> None:
    session, invocation = (await hand.run("start", REPORT)).ids
    for table in ("fences", "runs", "tool_calls", "model_replies"):
        await database.values(f"DELETE FROM triage.{table}")
    refused = await hand.run("resume", session, invocation)
    assert (refused.code, "already finished" in refused.err) == (1, True)
    assert len(hand.model.requests) == 4


@pytest.mark.parametrize("hand", ["sqlite"], indirect=True)
async def test_a_refusal_makes_no_file(hand: Hand) -> None:
    refused = await hand.run("resume", "run-1", "inv-1")
    assert (refused.code, refused.err) == (1, "triage: there is no session 'run-1'\n")
    assert not (hand.folder / "triage.db").exists()


@pytest.mark.parametrize("hand", ["sqlite"], indirect=True)
async def test_a_file_that_is_no_session_database_is_left_alone(hand: Hand) -> None:
    path = hand.folder / "triage.db"
    path.write_text("some notes of mine, which are certainly longer than a page header of a database" * 20)
    before = path.read_bytes()
    for arguments in (("start", REPORT), ("resume", "run-1", "inv-1")):
        refused = await hand.run(*arguments)
        assert refused.code == 1
        assert refused.err.splitlines()[-1].endswith("file is not a database")
        assert "Traceback" not in refused.err
    assert path.read_bytes() == before


@pytest.mark.parametrize("hand", ["sqlite"], indirect=True)
async def test_a_database_of_something_else_holds_no_session(hand: Hand) -> None:
    sqlite3.connect(hand.folder / "triage.db").execute("CREATE TABLE notes (text)").connection.close()
    refused = await hand.run("resume", "run-1", "inv-1")
    assert (refused.code, refused.err) == (1, "triage: there is no session 'run-1'\n")
    assert await hand.rows("SELECT name FROM sqlite_master") == [("notes",)]


@pytest.mark.parametrize("hand", ["sqlite"], indirect=True)
async def test_a_folder_that_is_not_there_is_named(hand: Hand) -> None:
    refused = await hand.run("start", "--database", "sqlite:////nowhere/triage.db", REPORT)
    assert refused.code == 1
    assert (
        refused.err == "triage: DOCS_DB is the SQLite file /nowhere/triage.db: unable to open database file\n"
    )
