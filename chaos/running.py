"""All trials on one Postgres, a few at a time."""

import asyncio
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rich.progress import Progress
from sqlalchemy.ext.asyncio import AsyncEngine

from chaos.planning import plan
from chaos.trials import NOTHING, Outcome, Trial, carry_out, hold_against
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_local.postgres import PostgresServer

AT_ONCE: Final = 3
"""Trials that run at the same time: most of one is waiting for processes."""


@dataclass(slots=True, kw_only=True)
class Site:
    """Where trials run."""

    engine: AsyncEngine
    url: DatabaseUrl
    folder: Path
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def carry_out(self, trial: Trial, undisturbed: Outcome | None = None) -> Outcome:
        """Carry a trial out when there is a place, and hold it against the undisturbed run."""
        async with self.places:
            try:
                outcome = await carry_out(trial, engine=self.engine, url=self.url, folder=self.folder)
            except TimeoutError as error:
                trial.problems.append(str(error))
                return undisturbed or NOTHING
        if undisturbed is not None:
            hold_against(trial, outcome, undisturbed)
        return outcome


@asynccontextmanager
async def open_site() -> AsyncIterator[Site]:
    """Start a Postgres of its own, with our schema."""
    with TemporaryDirectory() as folder, PostgresServer(Path(folder)) as server:
        url = DatabaseUrl.parse(server.create_database("chaos"))
        await migrate(url)
        engine = open_engine(url, application="chaos", pool_size=2 * AT_ONCE)
        try:
            yield Site(engine=engine, url=url, folder=Path(folder))
        finally:
            await engine.dispose()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many trials there are. ``sample`` is the share of the boundaries at which a process is killed.

    ``cold`` is the number of trials of each shape with processes that import; ``at_most`` limits all others, None: all.
    """

    sample: float
    cold: int
    at_most: int | None = None


async def run_trials(
    shapes: Collection[str], extent: Extent, *, seed: int, progress: Progress
) -> list[Trial]:
    """Run every shape undisturbed, and then its trials."""
    chance = random.Random(seed)
    async with open_site() as site:
        return [
            trial
            for shape in shapes
            for trial in await _run_shape(site, shape, extent, chance=chance, progress=progress)
        ]


async def _run_shape(
    site: Site, shape: str, extent: Extent, *, chance: random.Random, progress: Progress
) -> list[Trial]:
    first = Trial(shape=shape)
    undisturbed = await site.carry_out(first)
    if first.problems:
        return [first]
    trials = [*plan(shape, undisturbed.steps, chance=chance, sample=extent.sample)]
    if extent.at_most is not None:
        trials = chance.sample(trials, min(extent.at_most, len(trials)))
    entries = undisturbed.asked + undisturbed.effects.total()
    trials += [
        Trial(shape=shape, cold_kill_at=chance.randint(1, max(1, entries))) for _ in range(extent.cold)
    ]
    task = progress.add_task(shape, total=len(trials))

    async def carry_out_one(trial: Trial) -> None:
        await site.carry_out(trial, undisturbed)
        progress.advance(task)

    async with asyncio.TaskGroup() as group:
        for trial in trials:
            group.create_task(carry_out_one(trial))
    return [first, *trials]
