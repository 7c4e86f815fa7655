"""The sweep: every run and pod that is, against every one that should be. What watches miss, it finds."""

import asyncio
import logging
import time
from collections.abc import Callable

from triage_contract.exceptions import DatabaseError
from triage_operator.exceptions import KubeError
from triage_operator.kube import Kube
from triage_operator.metrics.runs import Sample
from triage_operator.places import AgentKey, Places
from triage_operator.queueing import WorkQueue
from triage_operator.resources import OUR_PODS
from triage_operator.settings import ReconcilingSettings
from triage_operator.sightings import Sightings, run_of
from triage_operator.store import Store
from triage_operator.stored import RunKey

_logger = logging.getLogger(__name__)


class Sweeper:
    """Compares, and wakes what differs. ``namespaces`` empty: all are watched."""

    def __init__(
        self,
        kube: Kube,
        store: Store,
        *,
        places: Places,
        sightings: Sightings,
        queue: WorkQueue[RunKey],
        note_agent: Callable[[AgentKey], None],
        namespaces: tuple[str, ...],
        settings: ReconcilingSettings,
    ) -> None:
        self._kube = kube
        self._store = store
        self._places = places
        self._sightings = sightings
        self._queue = queue
        self._note_agent = note_agent
        self._namespaces = namespaces
        self._settings = settings
        self._resynced_at: float | None = None
        self._begun_at = self._turned_at = time.monotonic()
        self._swept_at: float | None = None
        self.duplicates: tuple[Sample, ...] = ()
        """What the last sweep found of effects that happened twice, for the metrics."""

    @property
    def has_swept(self) -> bool:
        """Whether a sweep was completed since ``begin``."""
        return self._swept_at is not None

    def age_seconds(self) -> float:
        """Say how long ago the last sweep was completed; before the first one, how long ago this began."""
        return time.monotonic() - (self._swept_at or self._begun_at)

    def idle_seconds(self) -> float:
        """Say how long ago the last sweep ended, completed or not."""
        return time.monotonic() - self._turned_at

    def begin(self) -> None:
        """Forget earlier sweeps: the next one wakes every unfinished run."""
        self._resynced_at = self._swept_at = None
        self._begun_at = self._turned_at = time.monotonic()

    async def work(self) -> None:
        """Sweep until cancelled."""
        while True:
            try:
                await self.sweep()
                delay = self._settings.sweep_seconds
            except (KubeError, DatabaseError) as error:
                _logger.warning("a sweep failed", extra={"action": "sweep", "reason": str(error)})
                delay = min(self._settings.reconnect_seconds, self._settings.sweep_seconds)
            # A row or an object that nobody thought of must not end the operator, and again after each start.
            except Exception:
                _logger.exception("a sweep failed", extra={"action": "sweep"})
                delay = self._settings.sweep_seconds
            self._turned_at = time.monotonic()
            await asyncio.sleep(delay)

    async def sweep(self) -> None:
        """Compare once, and wake every run about which something is new, or missing.

        Raises:
            KubeError, DatabaseError: it could not be completed.
        """
        started = time.monotonic()
        resync = self._resynced_at is None or started - self._resynced_at >= self._settings.resync_seconds
        # Rows first: a run that is recorded later than this has been listed, or its object is not there.
        active = await self._store.active_runs()
        standing: dict[RunKey, str] = {}
        pods: dict[RunKey, set[str]] = {}
        for namespace in self._namespaces or (None,):
            async for run in self._kube.list_runs(namespace):
                key = (run["metadata"]["namespace"], run["metadata"]["name"])
                standing[key] = run["metadata"]["uid"]
                news = self._sightings.run(run)
                over = self._sightings.is_over(key)
                if not over:
                    self._places.expect(run)
                if (news and not self._sightings.rests(run)) or (resync and not over):
                    self._queue.wake(key)
            async for pod in self._kube.list_pods(namespace, label_selector=OUR_PODS):
                owner = run_of(pod)
                if owner is not None:
                    pods.setdefault(owner, set()).add(pod["metadata"]["name"])
                    if self._sightings.pod(pod):
                        self._queue.wake(owner)
            if resync:
                async for agent in self._kube.list_agents(namespace):
                    self._note_agent(AgentKey(agent["metadata"]["namespace"], agent["metadata"]["name"]))
        for key in self._sightings.missing(pods):
            self._queue.wake(key)
        for recorded in active:
            key = (recorded.row.namespace, recorded.row.name)
            if self._is_watched(key[0]) and standing.get(key) != str(recorded.row.id):
                # Only a reading of that name proves that the run is gone: the pass makes it.
                self._sightings.forget(key)
                self._queue.wake(key)
            elif self._sightings.is_over(key) or recorded.node in self._sightings.parting:
                self._queue.wake(key)
        for key in set(self._sightings.runs) - set(standing):
            self._queue.wake(key)
        await self._store.count_recoveries()
        self.duplicates = await self._store.duplicate_effects()
        self._swept_at = time.monotonic()
        if resync:
            self._resynced_at = started

    def _is_watched(self, namespace: str) -> bool:
        return not self._namespaces or namespace in self._namespaces
