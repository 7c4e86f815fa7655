"""The API server or the database is in trouble while runs are being lost: all end, each with one issue."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from sqlalchemy.exc import DBAPIError

from support.site import Site
from support.system import System
from triage_contract.states import Phase
from triage_local.apiserver import Answer, Faults
from triage_local.demo.holds import Place, holding

pytestmark = pytest.mark.asyncio(loop_scope="session")

OPERATORS_WATCHES = "triageruns.*watch|pods.*labelSelector.*watch"


async def test_runs_lost_while_the_api_server_is_in_trouble_end_once(system: System, site: Site) -> None:
    names = [f"run-{number}" for number in range(5)]
    faults = site.cluster.server.faults
    try:
        async with system.restarting(), contextlib.AsyncExitStack() as stack:
            holds = {
                name: await stack.enter_async_context(holding(site.engine, name, Place.AFTER_WRITE))
                for name in names
            }
            # Some answers are slow, some never come, some refuse.
            faults.answer(Answer(method="GET", target="/triageruns/", delay_seconds=0.5, left=5))
            faults.answer(Answer(method="POST", target="/pods$", status=429, retry_after_seconds=1, left=2))
            faults.answer(Answer(method="PUT", target="/status$", status=500, left=3))
            for name in names:
                await site.create_run(name)
            for hold in holds.values():
                await hold.reached()
            troubles: list[Callable[[], object]] = [
                lambda: faults.freeze_watches(OPERATORS_WATCHES),
                lambda: _forget(faults),
                lambda: faults.truncate_watches(OPERATORS_WATCHES),
                lambda: faults.fail_watches(500, OPERATORS_WATCHES),
                lambda: faults.answer(Answer(method="POST", target="/pods$", status=504)),
            ]
            for name, trouble in zip(names, troubles, strict=True):
                trouble()
                faults.lose_deleted("pods", 1)
                gone = await site.container(name)
                await site.delete("Pod", (await site.pod(name))["metadata"]["name"], grace_seconds=0)
                await gone.reap()
                await holds[name].cut_off()
            for name in names:
                status = await site.ended(name)
                await site.succeeded(name, [one["cause"] for one in status["attempts"][:-1]])
                assert status["resumes"] >= 1
                assert await site.suppressed(name) == (0, 1)
    finally:
        faults.clear()


def _forget(faults: Faults) -> None:
    faults.expire()
    faults.drop_watches(OPERATORS_WATCHES)


async def test_runs_outlive_a_database_that_is_away(system: System, site: Site) -> None:
    # The hold goes down with the database.
    with contextlib.suppress(DBAPIError):
        async with holding(site.engine, "in-tool", Place.IN_TOOL) as hold:
            await site.create_run("in-tool")
            await hold.reached()
            await site.create_run("starting")
            await site.container("starting")
            await asyncio.to_thread(site.cluster.postgres.stop, immediate=True)
    await site.create_run("asked-meanwhile")
    await site.held_up("asked-meanwhile", "DatabaseUnreachable")
    await asyncio.sleep(3)
    await asyncio.to_thread(site.cluster.postgres.start)
    for name in ("in-tool", "starting", "asked-meanwhile"):
        status = await site.ended(name)
        assert status["phase"] == Phase.SUCCEEDED, status
        await site.succeeded(name, [one["cause"] for one in status["attempts"][:-1]])
        assert status["noProgress"] == 0
