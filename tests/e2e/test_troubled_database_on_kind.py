"""The database is in trouble while runs are at work: all end, each with one issue, at nobody's cost."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import pytest
from sqlalchemy.exc import DBAPIError

from support.kind import trial_database
from support.kind.cluster import Kind
from support.kind.site import KindSite
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(420)]

_AWAY_SECONDS: Final = 60


async def test_runs_outlive_a_killed_database(kind: Kind, site: KindSite) -> None:
    lost_at = await _lose_database(site, "at-kill", lambda: trial_database.kill(kind))
    await site.create_run("later")
    for name in ("at-kill", "starting", "later"):
        await _succeeded_at_no_cost(site, name, "Postgres killed", lost_at)


async def test_runs_outlive_a_database_that_is_away_for_a_minute(kind: Kind, site: KindSite) -> None:
    async with contextlib.AsyncExitStack() as stack:
        await _lose_database(site, "at-loss", lambda: stack.enter_async_context(trial_database.away(kind)))
        minute = asyncio.create_task(asyncio.sleep(_AWAY_SECONDS))
        await site.create_run("asked-meanwhile")
        await site.held_up("asked-meanwhile", "DatabaseUnreachable")
        await minute
    back_at = datetime.now(UTC)
    for name in ("at-loss", "starting", "asked-meanwhile"):
        await _succeeded_at_no_cost(site, name, "Postgres away for a minute, since it is back", back_at)


async def _lose_database(site: KindSite, run: str, lose: Callable[[], Awaitable[None]]) -> datetime:
    """Lose the database while a run is held in its tool, and another one starts; give when."""
    # The hold goes down with the database, and is left in its table: that name is used up.
    with contextlib.suppress(DBAPIError):
        async with holding(site.engine, run, Place.IN_TOOL) as hold:
            await site.create_run(run)
            await hold.reached()
            await site.create_run("starting")
            await site.started("starting")
            lost_at = datetime.now(UTC)
            await lose()
    return lost_at


async def _succeeded_at_no_cost(site: KindSite, run: str, case: str, lost_at: datetime) -> None:
    """See that a run did its work once, and that nothing of its budget went: whether its pod was lost is open."""
    status = await site.ended(run)
    causes = [one["cause"] for one in status["attempts"][:-1]]
    await site.succeeded(run, causes)
    assert status["noProgress"] == 0, status
    if causes:
        await site.went_on(case, run, lost_at)
