"""The API server or the database is in trouble while runs are being lost: all end, each with one issue."""

import asyncio
import contextlib
import signal
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
    faults = system.faults
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
                assert await site.suppressed(name) == (1, 0)
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


async def test_a_run_killed_while_the_api_server_is_away_goes_on_when_it_is_back(site: Site) -> None:
    async with holding(site.engine, "unwatched", Place.AFTER_WRITE) as hold:
        await site.create_run("unwatched")
        await hold.reached()
        process = await site.container("unwatched")
        await site.cluster.server.stop()
        process.signal_tree(signal.SIGKILL)
        await process.reap()
        await hold.cut_off()
        await asyncio.sleep(2)
        await site.cluster.server.start()
        await site.succeeded("unwatched", ["sigkill"])
    assert await site.suppressed("unwatched") == (1, 0)


async def test_signs_of_life_that_break_off_for_a_moment_are_no_death(system: System, site: Site) -> None:
    async with holding(site.engine, "cut-off", Place.IN_TOOL) as hold:
        await site.create_run("cut-off")
        await hold.reached()
        cut = await system.values(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name LIKE 'triage-operator%' OR application_name = :vitals",
            vitals=f"triage-vitals/{site.uid('cut-off')}",
        )
        assert cut[0][0] >= 3
        # A lock that stays free for half a second would be taken for death.
        await asyncio.sleep(2)
        await hold.release()
        await site.succeeded("cut-off")
