"""How many connections to Postgres an attempt holds."""

import signal

import pytest

from support.databases import Database, a_run
from support.killing import Agent, At, Step, ended, stopped

OPEN = (
    "SELECT split_part(application_name, '/', 1) AS application FROM pg_stat_activity"
    " WHERE application_name ~ '^triage-' ORDER BY application"
)


@pytest.mark.parametrize("step", ["begin_call", "append_event", "store_reply"])
async def test_an_attempt_holds_one_connection_for_its_work_and_one_for_its_life(
    database: Database, agent: Agent, step: Step
) -> None:
    run = a_run()
    at = At(when="after", step=step, nth=3, number=signal.SIGSTOP)
    process = agent.start(run, await database.open(run), at)
    assert process.pid is not None
    await stopped(process.pid)
    assert await database.values(OPEN) == [("triage-agent",), ("triage-vitals",)]
    process.kill()
    await ended(process)
