"""An attempt that is asked to end: what it began ends, nothing else begins, and its successor may start at once."""

import asyncio
import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from support.databases import Database, a_run
from support.killing import Agent, At, ended
from support.odd_apps import RELEASE
from triage_contract.database.fence import OpenedAttempt
from triage_contract.database.rows import RunRow
from triage_contract.names import AttemptEnv, Channel
from triage_contract.states import ExitCode
from triage_contract.termination import TerminationMessage
from triage_local.model.faults import Fault
from triage_local.model.server import ScriptedModel


def with_environment(agent: Agent, environment: Mapping[str, str]) -> Agent:
    return replace(agent, environment={**agent.environment, **environment})


async def is_asked(model: ScriptedModel, times: int) -> None:
    """Wait until the model was asked so often."""
    while len(model.requests) < times:
        await asyncio.sleep(0.01)


async def ask_for_hand_off(database: Database, attempt: OpenedAttempt) -> None:
    """Ask as the operator does."""
    await database.values(
        "UPDATE triage.attempts SET handoff_requested_at = now(), handoff_reason = 'suspended'"
        " WHERE serial = :serial",
        serial=attempt.serial,
    )
    await database.values(
        "SELECT pg_notify(:channel, :serial)", channel=Channel.HANDOFF, serial=str(attempt.serial)
    )


async def outcome(database: Database) -> tuple[object, ...]:
    (row,) = await database.values(
        "SELECT a.outcome, a.released_at IS NOT NULL, a.replies, a.calls_done, f.token"
        " FROM triage.attempts a, triage.fences f ORDER BY a.epoch DESC LIMIT 1"
    )
    return row


async def finishes(database: Database, agent: Agent, run: RunRow, attempt: OpenedAttempt) -> None:
    """See that the next attempt ends the run with one issue."""
    successor = await database.open(run, observed_epoch=attempt.epoch)
    assert await agent.work(run, successor) == ExitCode.FINISHED
    assert await database.values("SELECT count(*) FROM triage.issues") == [(1,)]


async def hand_off_is_heard(database: Database) -> None:
    """Wait for the heartbeat that follows the request: its answer tells the process of it."""
    heard = "SELECT heartbeat_at > handoff_requested_at FROM triage.attempts"
    while not (await database.values(heard))[0][0]:
        await asyncio.sleep(0.01)


def interrupt(process: ForkServerProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)


@pytest.mark.parametrize("heartbeat_seconds", ["0.2", "3600"], ids=["heartbeat", "notification"])
async def test_a_hand_off_on_request_ends_at_the_next_boundary(
    database: Database, agent: Agent, model: ScriptedModel, heartbeat_seconds: str
) -> None:
    agent = with_environment(agent, {AttemptEnv.HEARTBEAT_SECONDS: heartbeat_seconds})
    model.faults.add(Fault(hang=True, step="file_issue"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    await is_asked(model, 3)
    await ask_for_hand_off(database, attempt)
    await hand_off_is_heard(database)
    model.faults.release()
    assert await ended(process) == ExitCode.HANDED_OFF
    assert await outcome(database) == ("handed_off", True, 3, 2, None)
    await finishes(database, agent, run, attempt)
    assert len(model.requests) == 4


@pytest.mark.parametrize("by_signal", [True, False], ids=["sigterm", "request"])
async def test_a_model_that_takes_longer_than_the_grace_period_is_not_waited_for(
    database: Database, agent: Agent, model: ScriptedModel, tmp_path: Path, by_signal: bool
) -> None:
    told = tmp_path / "told"
    agent = with_environment(agent, {AttemptEnv.GRACE_SECONDS: "5", AttemptEnv.TERMINATION_LOG: str(told)})
    model.faults.add(Fault(hang=True, step="file_issue"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    await is_asked(model, 3)
    if by_signal:
        interrupt(process)
    else:
        await ask_for_hand_off(database, attempt)
    assert await ended(process) == ExitCode.HANDED_OFF
    assert await outcome(database) == ("handed_off", True, 2, 2, None)
    message = TerminationMessage.from_json(told.read_text())
    assert message is not None
    assert message.outcome == "handed_off"
    await finishes(database, agent, run, attempt)


@pytest.mark.parametrize("app", ["blocking", "waiting"])
async def test_a_tool_that_was_begun_is_let_finish(
    database: Database, agent: Agent, tmp_path: Path, app: str
) -> None:
    release = tmp_path / "release"
    agent = with_environment(
        agent,
        {
            AttemptEnv.APP: f"support.odd_apps:{app}",
            AttemptEnv.GRACE_SECONDS: "5",
            RELEASE: str(release),
        },
    )
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while not release.with_suffix(".ids").exists():
        await asyncio.sleep(0.01)
    interrupt(process)
    while (await database.values("SELECT sigterm_at FROM triage.attempts"))[0][0] is None:
        await asyncio.sleep(0.01)
    release.touch()
    assert await ended(process) == ExitCode.HANDED_OFF
    assert await outcome(database) == ("handed_off", True, 1, 1, None)
    successor = await database.open(run, observed_epoch=attempt.epoch)
    assert await agent.work(run, successor) == ExitCode.FINISHED
    assert len(release.with_suffix(".ids").read_text().splitlines()) == 1


async def test_what_a_tool_left_running_does_not_outlive_the_attempt(
    database: Database, agent: Agent, tmp_path: Path
) -> None:
    release, told = tmp_path / "release", tmp_path / "told"
    environment = {
        AttemptEnv.APP: "support.odd_apps:leaving",
        AttemptEnv.TERMINATION_LOG: str(told),
        RELEASE: str(release),
    }
    attempt = await database.open(run := a_run())
    assert await with_environment(agent, environment).work(run, attempt) == ExitCode.IN_DOUBT
    release.touch()
    message = TerminationMessage.from_json(told.read_text())
    assert message is not None
    assert message.outcome == "in_doubt"
    assert not release.with_suffix(".done").exists()


async def test_asked_to_end_before_it_claims_it_begins_nothing(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    run = a_run()
    attempt = await database.open(run)
    at = At(when="before", step="claim", nth=1, number=signal.SIGTERM)
    assert await agent.work(run, attempt, at) == ExitCode.HANDED_OFF
    assert await outcome(database) == ("handed_off", True, 0, 0, None)
    assert not model.requests
    assert await database.values("SELECT count(*) FROM events") == [(0,)]
    await finishes(database, agent, run, attempt)


async def test_two_signals_are_one(database: Database, agent: Agent, model: ScriptedModel) -> None:
    model.faults.add(Fault(hang=True, step="list_pages"))
    run = a_run()
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    await is_asked(model, 1)
    interrupt(process)
    interrupt(process)
    model.faults.release()
    assert await ended(process) == ExitCode.HANDED_OFF
    assert await outcome(database) == ("handed_off", True, 1, 0, None)
