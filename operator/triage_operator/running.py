"""The running operator: all its parts, wired up, from the start to the end of the process."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from triage_contract.exceptions import DatabaseError
from triage_operator.agents import AgentKeeper
from triage_operator.announcing import Announcer
from triage_operator.applying import Applier
from triage_operator.embedding import Watcher
from triage_operator.exceptions import KubeRefusedError, KubeUnavailableError
from triage_operator.gathering import Gatherer
from triage_operator.handlers import Handlers
from triage_operator.health import serving
from triage_operator.hearing import Hearing
from triage_operator.kube import Kube
from triage_operator.leasing import Leadership
from triage_operator.listening import Listener, Looker
from triage_operator.lives import Lives
from triage_operator.metrics.exporting import Metrics
from triage_operator.metrics.runs import standing_samples, unattended_samples, zero_samples
from triage_operator.permissions import NODE_PERMISSIONS
from triage_operator.places import AgentKey, Places
from triage_operator.queueing import WorkQueue
from triage_operator.reconciling import Reconciler
from triage_operator.resources import AGENTS, NODES, RUNS, WATCHED
from triage_operator.settings import Settings
from triage_operator.sightings import Sightings
from triage_operator.snapshot import Refusal, Resize
from triage_operator.steps import Checkpoint, go_on
from triage_operator.store import Store
from triage_operator.stored import RunKey
from triage_operator.sweeping import Sweeper

Given = TypeVar("Given")

_logger = logging.getLogger(__name__)


class Operator:
    """One process's operator. ``watched`` are the plural names of the resources that it watches."""

    def __init__(
        self,
        settings: Settings,
        kube: Kube,
        store: Store,
        *,
        cluster_id: str,
        watched: tuple[str, ...],
        checkpoint: Checkpoint = go_on,
    ) -> None:
        self._settings = settings
        self._watched = watched
        self._kube = kube
        self._store = store
        self._metrics = Metrics()
        self._queue: WorkQueue[RunKey] = WorkQueue()
        self._sightings = Sightings()
        self._places = Places()
        self._hearing = Hearing(watched)
        self._leadership = Leadership(kube, settings.lease)
        self._announcer = Announcer(kube, identity=settings.lease.identity)
        self._agents = AgentKeeper(kube, store, settings.reconciling)
        lives = Lives()
        refusals: dict[int, Refusal] = {}
        resizes: dict[int, Resize] = {}
        self._listener = Listener(store, self._queue, settings.reconciling)
        self._sweeper = Sweeper(
            kube,
            store,
            places=self._places,
            sightings=self._sightings,
            queue=self._queue,
            note_agent=self._agents.note,
            namespaces=settings.namespaces,
            settings=settings.reconciling,
        )
        self._gatherer = Gatherer(
            kube,
            store,
            cluster_id=cluster_id,
            lives=lives,
            places=self._places,
            sightings=self._sightings,
            refusals=refusals,
            resizes=resizes,
        )
        self._reconciler = Reconciler(
            kube,
            store,
            gatherer=self._gatherer,
            applier=Applier(
                kube,
                store,
                cluster_id=cluster_id,
                refusals=refusals,
                resizes=resizes,
                heartbeat_seconds=settings.deciding.heartbeat_seconds,
                checkpoint=checkpoint,
            ),
            announcer=self._announcer,
            agents=self._agents,
            places=self._places,
            sightings=self._sightings,
            queue=self._queue,
            metrics=self._metrics,
            deciding=settings.deciding,
            settings=settings.reconciling,
            checkpoint=checkpoint,
        )
        self._looker = Looker(
            store,
            self._queue,
            lives,
            settings.reconciling,
            settings.deciding,
            recovered=self._reconciler.try_failed_again,
        )
        handlers = Handlers(
            wake=self._wake, note_agent=self._note_agent, sightings=self._sightings, places=self._places
        )
        self._watcher = Watcher(
            kube,
            resources=watched,
            see=handlers.see,
            hearing=self._hearing,
            namespaces=settings.namespaces,
        )
        self._metrics.read_at_scrape("leader", lambda: float(self._leadership.leading))
        self._metrics.read_at_scrape("queue_depth", lambda: float(len(self._queue)))
        self._metrics.read_at_scrape("sweep_age_seconds", self._sweeper.age_seconds)
        self._metrics.read_at_scrape("look_age_seconds", self._looker.age_seconds)
        kube.answered = self._metrics.request
        store.answered = self._metrics.statement
        self._metrics.connections("busy", store.busy_connections)
        self._metrics.connections("idle", store.idle_connections)
        self._metrics.read_at_scrape("database_up", lambda: float(self._looker.is_sighted))
        for resource in watched:
            self._metrics.watch_age(resource, partial(self._hearing.age_seconds, resource))

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set; then give the Lease back.

        Raises:
            Exception: kopf, or a part of ours, has failed for good. Start the process again.
        """
        stopping = asyncio.create_task(stop.wait())
        leading = asyncio.create_task(self._leadership.keep(self._lead))
        watching = asyncio.create_task(self._watcher.work())
        tasks: tuple[asyncio.Task[Any], ...] = (stopping, leading, watching)
        try:
            async with serving(
                self._settings.serving, scrape=self.scrape, alive=self.fault, ready=self.not_ready
            ) as port:
                _logger.info("serving", extra={"action": "serve", "port": port})
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in done:
            task.result()

    async def scrape(self) -> bytes:
        """Give the metrics as text."""
        if not self._leadership.leading:
            return self._metrics.export(())
        standings = self._sightings.standings
        samples = [
            *standing_samples(standings.values(), datetime.now(UTC)),
            *zero_samples(standings.values()),
            *self._agents.samples(),
            *self._sweeper.duplicates,
        ]
        try:
            samples += await self._store.totals()
            lapse = self._settings.deciding.heartbeat_lapse_seconds
            samples += unattended_samples(standings, await self._store.unattended(lapse_seconds=lapse))
        except DatabaseError as error:
            _logger.warning("no counters", extra={"action": "scrape", "reason": str(error)})
        return self._metrics.export(samples)

    def fault(self) -> str | None:
        """Say why this process should be started again; None: it lives."""
        limit = self._settings.serving.stale_seconds
        for resource in self._watched:
            if (age := self._hearing.age_seconds(resource)) > limit:
                return f"no word on the watch of {resource} for {age:.0f} s"
        if self._leadership.leading and (age := self._sweeper.idle_seconds()) > limit:
            return f"no sweep for {age:.0f} s"
        return None

    def not_ready(self) -> str | None:
        """Say why this process does not do its work; None: it does, or stands by."""
        if not self._leadership.leading:
            return self.fault()
        limit = self._settings.serving.stale_seconds
        if self._looker.age_seconds() > min(limit, self._settings.deciding.heartbeat_lapse_seconds):
            return "the database is out of reach"
        if not self._sweeper.has_swept:
            return "not swept yet"
        return self.fault()

    async def _lead(self) -> None:
        self._sweeper.begin()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._looker.work())
                group.create_task(self._listener.work())
                group.create_task(self._sweeper.work())
                group.create_task(self._announcer.work())
                group.create_task(self._agents.work())
                group.create_task(
                    self._queue.work(self._reconciler.reconcile, workers=self._settings.reconciling.workers)
                )
        finally:
            self._queue.clear()

    # Whoever begins to lead wakes every unfinished run, and looks over every agent.

    def _wake(self, key: RunKey) -> None:
        if self._leadership.leading:
            self._queue.wake(key)

    def _note_agent(self, key: AgentKey) -> None:
        self._gatherer.forget_agent(key)
        if self._leadership.leading:
            self._agents.note(key)


async def run(settings: Settings, stop: asyncio.Event, *, checkpoint: Checkpoint = go_on) -> None:
    """Run an operator until ``stop`` is set.

    Raises:
        KubeConfigError, DatabaseUrlError: the settings lead nowhere.
        Exception: it has failed for good. Start the process again.
    """
    url = settings.database.locate()
    async with Kube.connect(settings.kube) as kube:
        found = await _unless_stopped(stop, _wait_for_cluster(kube, settings))
        if found is None:
            return
        cluster_id, watched = found
        store = Store(url, cluster_id, pool_size=settings.database.pool_size)
        try:
            await Operator(
                settings, kube, store, cluster_id=cluster_id, watched=watched, checkpoint=checkpoint
            ).run(stop)
        finally:
            await store.close()


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, Given]) -> Given | None:
    """Give what some work gives; None: it was to stop before."""
    tasks = working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.wait(tasks)


async def _wait_for_cluster(kube: Kube, settings: Settings) -> tuple[str, tuple[str, ...]]:
    """Wait until the API server answers and serves our resources; give the cluster's id, and what to watch in it."""
    while True:
        try:
            missing = {RUNS, AGENTS} - await kube.served_resources()
            if not missing:
                return settings.cluster_id or await kube.cluster_id(), await _watchable(kube)
            reason = f"not served: {', '.join(sorted(missing))}; apply what `triage-operator crds` prints"
        except KubeUnavailableError as error:
            reason = str(error)
        _logger.warning("waiting for the cluster", extra={"action": "start", "reason": reason})
        await asyncio.sleep(settings.reconciling.reconnect_seconds)


async def _watchable(kube: Kube) -> tuple[str, ...]:
    """Give the plural names of what this operator may watch."""
    with suppress(KubeRefusedError):  # whoever may not even ask
        if all([await kube.allowed(*one, None) for one in NODE_PERMISSIONS]):
            return (*WATCHED, NODES)
    _logger.warning(
        "nodes may not be watched: a run leaves one that is about to go only when its pod is evicted",
        extra={"action": "start"},
    )
    return WATCHED
