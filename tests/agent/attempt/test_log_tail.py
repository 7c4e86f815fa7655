"""The last lines of an attempt, kept in the database for when its pod is gone."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from support.databases import Database, a_run
from support.killing import Agent
from triage_agent.attempt.tail import LINE_LENGTH, LINES, Tail
from triage_local.model.faults import Fault
from triage_local.model.server import ScriptedModel


def test_pieces_become_lines_and_what_is_told_is_not_told_again() -> None:
    tail = Tail()
    assert tail.news() is None
    for piece in ("one\ntw", "o\nthree"):
        tail.write(piece)
    assert tail.news() == "one\ntwo\nthree"
    assert tail.news() is None
    tail.write("!\n")
    assert tail.news() == "one\ntwo\nthree!"


def test_a_tail_is_bounded_by_lines_and_by_their_length() -> None:
    tail = Tail()
    tail.write("".join(f"line {number}\n" for number in range(10_000)))
    tail.write("x" * 1_000_000)
    told = tail.news()
    assert told is not None
    lines = told.split("\n")
    assert (len(lines), len(lines[-1]), lines[-2]) == (LINES + 1, LINE_LENGTH, "line 9999")


def test_secrets_are_masked_and_what_postgres_refuses_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCS_MODEL_API_KEY", "hunter2hunter2")
    tail = Tail()
    tail.write("asked postgresql://me:pass-word@db/x with hunter2hunter2\0\n")  # pragma: allowlist secret
    told = tail.news()
    assert told is not None
    assert "hunter2" not in told
    assert "pass-word" not in told
    assert "\0" not in told


def test_what_is_captured_is_written_as_before(capfd: pytest.CaptureFixture[str]) -> None:
    tail = Tail()
    streams = sys.stdout, sys.stderr
    try:
        tail.capture()
        sys.stdout.write("to standard output\n")
        sys.stderr.write("to standard error\n")
    finally:
        sys.stdout, sys.stderr = streams
    assert tail.news() == "to standard output\nto standard error"


async def test_the_lines_of_a_killed_attempt_are_kept(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    model.faults.add(Fault(hang=True, step="list_pages"))
    run = a_run()
    attempt = await database.open(run)
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("triage"),
        "attempt",
        env={**os.environ, **agent.environment_of(run, attempt)},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        while not model.requests:
            await asyncio.sleep(0.01)
        told = "SELECT tail FROM triage.log_tails WHERE serial = :serial AND tail LIKE '%\"loaded\"%'"
        while not (found := await database.values(told, serial=attempt.serial)):
            await asyncio.sleep(0.01)
    finally:
        process.kill()
        await process.wait()
    assert await database.values(told, serial=attempt.serial) == found
    assert '"message": "started"' in str(found)
    assert attempt.token not in str(found)
