"""Many runs at once, of which some are lost at random: each is done once, and no more work at a time than may."""

import asyncio
import contextlib
import os
from datetime import UTC, datetime
from enum import StrEnum
from random import Random
from typing import Final

import pytest
from sqlalchemy import text

from support.kind.site import KindSite
from triage_contract.states import Cause
from triage_local.demo.asking import until_true
from triage_local.kubelet.exceptions import ClusterError

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

_RUNS: Final = 50
_LOST: Final = 20
_AT_A_TIME: Final = 10
_SEED: Final = int(os.environ.get("TRIAGE_E2E_SEED", "15"))
# Events of a run that is not disturbed: the moments at which one may be lost.
_EVENTS: Final = 6


class Way(StrEnum):
    """What befalls a pod."""

    KILL = "SIGKILL"
    DELETE = "kubectl delete pod"
    DELETE_BY_FORCE = "kubectl delete pod --force"


_STORED: Final = text("SELECT count(*) >= :events FROM events WHERE session_id = :session")
_MOST_AT_A_TIME: Final = text(
    "WITH ours AS (SELECT a.* FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id WHERE r.namespace = :space)"
    " SELECT max(n) FROM (SELECT count(*) AS n FROM ours begun JOIN ours other ON other.created_at <= begun.created_at"
    " AND (other.ended_at IS NULL OR other.ended_at > begun.created_at) GROUP BY begun.serial) AS counts"
)


@pytest.mark.parametrize("seed", [_SEED])
async def test_fifty_runs_of_which_some_are_lost_take_ten_places(site: KindSite, seed: int) -> None:
    chance = Random(seed)
    await site.change("TriageAgent", "default", concurrency={"maxRunning": _AT_A_TIME})
    names = [f"run-{number:02}" for number in range(_RUNS)]
    losses = {
        name: (chance.choice(list(Way)), chance.randrange(_EVENTS)) for name in chance.sample(names, _LOST)
    }
    losing = {}
    async with asyncio.TaskGroup() as group:
        for name in names:
            await site.create_run(name)
        for name in names:
            await site.started(name)
            if name in losses:
                losing[name] = group.create_task(_lose(site, name, *losses[name]))
    resumes = 0
    for name in names:
        status = await site.ended(name)
        causes = [one["cause"] for one in status["attempts"][:-1]]
        assert {*causes} <= {Cause.SIGKILL, Cause.DELETED, Cause.VANISHED, Cause.SIGTERM}, status
        await site.succeeded(name, causes)
        resumes += status["resumes"]
        if name in losing and status["resumes"]:
            way, _ = losses[name]
            await site.went_on(f"{way}, one of {_RUNS} runs", name, losing[name].result())
    assert resumes > _LOST / 2
    async with site.engine.connect() as connection:
        most = (await connection.execute(_MOST_AT_A_TIME, {"space": site.namespace})).scalar_one()
    assert most == _AT_A_TIME


async def _lose(site: KindSite, run: str, way: Way, events: int) -> datetime:
    """Take a run's first pod away once it has stored that many events, unless it ends before that; give when."""
    session = f"run-{site.uid(run)}"
    await until_true(site.engine, _STORED, f"{run} stores {events} events", session=session, events=events)
    pod = (await site.pod(run))["metadata"]["name"]
    lost_at = datetime.now(UTC)
    with contextlib.suppress(ClusterError, AssertionError):
        match way:
            case Way.KILL:
                await site.kill(run)
            case Way.DELETE:
                await site.delete("Pod", pod)
            case Way.DELETE_BY_FORCE:
                await site.delete("Pod", pod, grace_seconds=0)
    return lost_at
