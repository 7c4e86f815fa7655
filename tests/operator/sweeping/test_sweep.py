"""The sweep: which runs it wakes, of those that are and those that should be."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from support.databases import Database
from support.operated import NAMESPACE, Cluster, Json
from triage_contract.api import parse_run
from triage_contract.database.fence import NewAttempt
from triage_contract.exceptions import DatabaseError
from triage_local.apiserver.faults import Answer
from triage_operator.exceptions import KubeError
from triage_operator.identity import run_row
from triage_operator.kube import Kube
from triage_operator.places import AgentKey, Places
from triage_operator.queueing import WorkQueue
from triage_operator.settings import ReconcilingSettings
from triage_operator.sightings import Sightings
from triage_operator.store import Store
from triage_operator.stored import RunKey
from triage_operator.sweeping import Sweeper


class Swept:
    """A sweeper, and what it wakes."""

    def __init__(self, kube: Kube, store: Store, namespaces: tuple[str, ...] = ()) -> None:
        self.store = store
        self.sightings = Sightings()
        self.agents: list[AgentKey] = []
        self._queue: WorkQueue[RunKey] = WorkQueue()
        self.sweeper = Sweeper(
            kube,
            store,
            places=Places(),
            sightings=self.sightings,
            queue=self._queue,
            note_agent=self.agents.append,
            namespaces=namespaces,
            settings=ReconcilingSettings(),
        )

    async def woken(self, *names: str) -> set[str]:
        """Sweep, and give those of some runs that it wakes."""
        self._queue.clear()
        await self.sweeper.sweep()
        return {name for name in names if (NAMESPACE, name) in self._queue}


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[Kube]:
    async with cluster.connect(patience_seconds=0.01) as kube:
        yield kube


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    store = Store(database.url, "cluster", pool_size=2)
    yield store
    await store.close()


@pytest.fixture
def swept(kube: Kube, store: Store) -> Callable[..., Swept]:
    return lambda *namespaces: Swept(kube, store, namespaces)


async def _record(store: Store, raw: Json) -> None:
    attempt = NewAttempt(pod="pod", image=None, memory_limit_bytes=None)
    await store.open_attempt(run_row(parse_run(raw), "cluster"), observed_epoch=0, attempt=attempt)


async def test_the_first_sweep_wakes_every_unfinished_run_and_the_next_ones_what_has_changed(
    cluster: Cluster, swept: Callable[..., Swept]
) -> None:
    this = swept()
    for name in ("one", "two"):
        await cluster.create_run(name)
    assert await this.woken("one", "two") == {"one", "two"}
    assert await this.woken("one", "two") == set()
    await cluster.change_run("two", suspend=True)
    assert await this.woken("one", "two") == {"two"}


async def test_a_run_that_is_over_rests(cluster: Cluster, swept: Callable[..., Swept]) -> None:
    this = swept()
    for name in ("over", "mortal", "changed"):
        await cluster.create_run(name, **({"ttlSecondsAfterFinished": 60} if name == "mortal" else {}))
        await cluster.edit_status(name, phase="Succeeded", observedGeneration=1)
    await cluster.change_run("changed", cancel=True)
    assert await this.woken("over", "mortal", "changed") == {"mortal", "changed"}


async def test_a_run_whose_status_says_that_it_is_over_and_whose_row_does_not_is_woken(
    cluster: Cluster, swept: Callable[..., Swept]
) -> None:
    this = swept()
    await _record(this.store, await cluster.create_run("edited"))
    await cluster.edit_status("edited", phase="Succeeded", observedGeneration=1)
    assert await this.woken("edited") == {"edited"}


async def test_a_recorded_run_whose_object_is_gone_or_another_is_woken(
    cluster: Cluster, swept: Callable[..., Swept]
) -> None:
    this = swept()
    for name in ("gone", "again", "standing"):
        await _record(this.store, await cluster.create_run(name))
    await this.woken()
    for name in ("gone", "again"):
        await cluster.delete_run(name)
    await cluster.create_run("again")
    await this.woken()
    assert await this.woken("gone", "again", "standing") == {"gone", "again"}
    assert (NAMESPACE, "gone") not in this.sightings.runs


async def test_rows_in_a_namespace_that_is_not_watched_wake_nothing(
    cluster: Cluster, swept: Callable[..., Swept]
) -> None:
    this = swept("elsewhere")
    await _record(this.store, await cluster.create_run("unwatched"))
    assert await this.woken("unwatched") == set()


async def test_a_pod_that_is_no_longer_there_wakes_its_run(
    cluster: Cluster, swept: Callable[..., Swept], kube: Kube
) -> None:
    this = swept()
    run = await cluster.create_run("one")
    await kube.create_pod(NAMESPACE, _pod_of(run))
    await this.woken()
    assert await this.woken("one") == set()
    (pod,) = await cluster.pods()
    await cluster.remove_pod(pod)
    assert await this.woken("one") == {"one"}
    assert await this.woken("one") == set()


async def test_agents_are_noted_by_the_first_sweep(cluster: Cluster, swept: Callable[..., Swept]) -> None:
    this = swept()
    await cluster.create_agent()
    await this.woken()
    await this.woken()
    assert this.agents == [AgentKey(NAMESPACE, "default")]


async def test_a_sweep_that_is_not_complete_says_so_and_leaves_its_age(
    cluster: Cluster, swept: Callable[..., Swept]
) -> None:
    this = swept()
    cluster.server.faults.answer(Answer(target="/pods", status=500, left=5))
    with pytest.raises((KubeError, DatabaseError)):
        await this.sweeper.sweep()
    completed = [this.sweeper.has_swept]
    cluster.server.faults.clear()
    await this.sweeper.sweep()
    assert [*completed, this.sweeper.has_swept] == [False, True]
    assert this.sweeper.age_seconds() < 5


def _pod_of(run: Json) -> Json:
    uid = run["metadata"]["uid"]
    owner = {"apiVersion": run["apiVersion"], "kind": "TriageRun", "name": "one", "uid": uid}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "one-a1",
            "labels": {
                "app.kubernetes.io/managed-by": "triage-operator",
                "triage-operator.dev/run-uid": uid,
                "triage-operator.dev/epoch": "1",
            },
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
    }


async def test_a_row_that_cannot_be_read_ends_no_sweeper(
    cluster: Cluster, store: Store, swept: Callable[..., Swept], monkeypatch: pytest.MonkeyPatch
) -> None:
    this, asked = swept(), asyncio.Event()

    async def unreadable() -> None:
        asked.set()
        raise ValueError("a value of a later release")

    monkeypatch.setattr(store, "active_runs", unreadable)
    working = asyncio.create_task(this.sweeper.work())
    async with asyncio.timeout(10):
        await asked.wait()
    done, _ = await asyncio.wait((working,), timeout=0.1)
    assert done == set()
    working.cancel()
    await asyncio.wait((working,))
