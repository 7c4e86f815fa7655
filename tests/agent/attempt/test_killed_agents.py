"""The docs-triage agent, killed at each boundary of its run, ends with one issue and one answer."""

import asyncio
import os
import signal
from collections import Counter
from itertools import product

import pytest

from support.databases import Database, a_run
from support.killing import Agent, At, assert_done_once, ended
from triage_agent.docs_triage.samples import report
from triage_contract.states import ExitCode
from triage_local.model.faults import Fault
from triage_local.model.server import ScriptedModel

REPORT = report("tokens")

# A whole run: nine events (input, three calls and their results, answer, end marker), three calls, four replies.
STEPS = {"append_event": 9, "begin_call": 3, "end_call": 3, "store_reply": 4}
PLACES = [
    *(
        At(when=when, step=step, nth=nth)  # type: ignore[arg-type]
        for step, times in STEPS.items()
        for when, nth in product(("before", "after"), range(1, times + 1))
    ),
    At(when="after", step="effect", nth=1),
]


async def test_an_undisturbed_run_finishes(database: Database, agent: Agent, model: ScriptedModel) -> None:
    run = a_run(REPORT)
    attempt = await database.open(run)
    assert await agent.work(run, attempt) == ExitCode.FINISHED
    await assert_done_once(database, run)
    assert [request.step for request in model.requests] == ["list_pages", "read_page", "file_issue", "text"]
    steps = await database.values(
        "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM triage.tool_calls WHERE state = 'done'),"
        " (SELECT count(*) FROM triage.model_replies)"
    )
    assert steps == [(STEPS["append_event"], STEPS["end_call"], STEPS["store_reply"])]
    ((outcome, replies, calls, prompt, output, token),) = await database.values(
        "SELECT a.outcome, a.replies, a.calls_done, a.prompt_tokens, a.output_tokens, f.token"
        " FROM triage.attempts a, triage.fences f"
    )
    assert (outcome, replies, calls, token) == ("finished", 4, 3, None)
    assert isinstance(prompt, int)
    assert isinstance(output, int)
    assert min(prompt, output) > 0


@pytest.mark.parametrize("place", PLACES, ids=str)
async def test_killed_at_a_boundary_the_next_attempt_finishes_the_run_once(
    database: Database, agent: Agent, model: ScriptedModel, place: At
) -> None:
    run = a_run(REPORT)
    attempt = await database.open(run)
    assert await agent.work(run, attempt, place) == -signal.SIGKILL
    await database.close(run, attempt.epoch)

    attempt = await database.open(run, observed_epoch=attempt.epoch)
    assert await agent.work(run, attempt) in (ExitCode.FINISHED, ExitCode.ALREADY_FINISHED)

    await assert_done_once(database, run)
    asked = Counter(request.digest for request in model.requests)
    lost_reply = place.step == "store_reply" and place.when == "before"
    assert sorted(asked.values(), reverse=True)[0] == (2 if lost_reply else 1)


async def test_killed_while_the_model_thinks_it_is_asked_again(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    model.faults.add(Fault(hang=True, step="file_issue"))
    run = a_run(REPORT)
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while len(model.requests) < 3:
        await asyncio.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    await ended(process)
    await database.close(run, attempt.epoch)
    attempt = await database.open(run, observed_epoch=attempt.epoch)
    assert await agent.work(run, attempt) == ExitCode.FINISHED
    await assert_done_once(database, run)


async def test_of_two_processes_of_one_attempt_one_works(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    run = a_run(REPORT)
    attempt = await database.open(run)
    codes = await asyncio.gather(agent.work(run, attempt), agent.work(run, attempt))
    assert sorted(codes) == [ExitCode.FINISHED, ExitCode.FENCED]
    await assert_done_once(database, run)
    assert len(model.requests) == STEPS["store_reply"]


async def test_a_stale_process_leaves_without_touching_anything(database: Database, agent: Agent) -> None:
    run = a_run(REPORT)
    stale = await database.open(run)
    await database.close(run, stale.epoch)
    await database.open(run, observed_epoch=stale.epoch)
    rows = "SELECT to_jsonb(a) - 'fenced_at' FROM triage.attempts a ORDER BY serial"  # that it was refused is noted
    before = await database.values(rows)
    assert await agent.work(run, stale) == ExitCode.FENCED
    assert await database.values(rows) == before
    assert await database.values("SELECT count(*) FROM events") == [(0,)]


async def test_a_process_of_an_unknown_run_leaves(database: Database, agent: Agent) -> None:
    attempt = await database.open(a_run(REPORT))
    assert await agent.work(a_run(REPORT), attempt) == ExitCode.FENCED


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_an_hour_off_changes_nothing(
    database: Database, model: ScriptedModel, hours: int
) -> None:
    run = a_run(REPORT)
    wrong = Agent(database=database, model_url=model.url, clock_offset_seconds=hours * 3600)
    right = Agent(database=database, model_url=model.url)
    attempt = await database.open(run)
    place = At(when="after", step="end_call", nth=2)
    assert await wrong.work(run, attempt, place) == -signal.SIGKILL
    await database.close(run, attempt.epoch)
    attempt = await database.open(run, observed_epoch=attempt.epoch)
    assert await right.work(run, attempt) == ExitCode.FINISHED
    await assert_done_once(database, run)
    assert len(model.requests) == STEPS["store_reply"]


async def test_asked_to_end_it_lets_the_tool_finish_and_hands_off(
    database: Database, agent: Agent, model: ScriptedModel
) -> None:
    model.faults.add(Fault(hang=True, step="file_issue"))
    run = a_run(REPORT)
    attempt = await database.open(run)
    process = agent.start(run, attempt)
    while len(model.requests) < 3:
        await asyncio.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    while not (await database.values("SELECT sigterm_at FROM triage.attempts"))[0][0]:
        await asyncio.sleep(0.01)
    model.faults.release()
    assert await ended(process) == ExitCode.HANDED_OFF
    ((outcome, released, replies, calls),) = await database.values(
        "SELECT outcome, released_at IS NOT NULL, replies, calls_done FROM triage.attempts"
    )
    assert (outcome, released, replies, calls) == ("handed_off", True, 3, 2)
    attempt = await database.open(run, observed_epoch=attempt.epoch)
    assert await agent.work(run, attempt) == ExitCode.FINISHED
    await assert_done_once(database, run)
    assert len(model.requests) == STEPS["store_reply"]
