"""Leadership: one leads, another takes over when the Lease is released, taken away or runs out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.operated import Cluster, a_cluster
from triage_local.apiserver.faults import Answer
from triage_operator.exceptions import KubeConflictError
from triage_operator.kube import Kube, Object
from triage_operator.leasing import Leadership
from triage_operator.settings import LeaseSettings


class Candidate:
    """An operator that does nothing but lead."""

    def __init__(self, kube: Kube, identity: str, *, renew_deadline_seconds: float = 10.0) -> None:
        self.leadership = Leadership(
            kube,
            LeaseSettings(
                namespace="default",
                identity=identity,
                retry_seconds=0.02,
                renew_deadline_seconds=renew_deadline_seconds,
            ),
        )
        self.began = asyncio.Event()
        self.ended = asyncio.Event()
        self.fail = asyncio.Event()

    async def lead(self) -> None:
        self.began.set()
        try:
            await self.fail.wait()
            raise ArithmeticError
        finally:
            self.ended.set()

    @asynccontextmanager
    async def standing(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.leadership.keep(self.lead))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait((task,))


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with a_cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[Kube]:
    async with cluster.connect(patience_seconds=0.01) as kube:
        yield kube


async def test_one_leads_and_the_other_takes_over_at_once_when_it_stops(kube: Kube) -> None:
    first, second = Candidate(kube, "first"), Candidate(kube, "second")
    async with first.standing() as task:
        await first.began.wait()
        async with second.standing():
            await asyncio.sleep(0.1)
            assert first.leadership.leading
            assert not second.leadership.leading
            task.cancel()
            async with asyncio.timeout(2):
                await second.began.wait()
            assert first.ended.is_set()
    lease = await kube.get_lease("default", "triage-operator")
    assert lease is not None
    assert lease["spec"]["leaseTransitions"] == 1


async def test_a_lease_whose_holder_died_is_taken_over_when_it_has_run_out_by_our_own_clock(
    kube: Kube,
) -> None:
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "triage-operator"},
        # The dead holder's clock was ahead by years: it says nothing about the Lease's age.
        "spec": {
            "holderIdentity": "dead",
            "leaseDurationSeconds": 1,
            "acquireTime": "2099-01-01T00:00:00.000000Z",
            "renewTime": "2099-01-01T00:00:00.000000Z",
        },
    }
    await kube.create_lease("default", body)
    candidate = Candidate(kube, "alive")
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with candidate.standing():
        async with asyncio.timeout(5):
            await candidate.began.wait()
    assert loop.time() - started >= 1.0


async def test_whoever_starts_again_under_the_same_identity_goes_on_at_once(kube: Kube) -> None:
    first, again = Candidate(kube, "same"), Candidate(kube, "same")
    async with first.standing() as task:
        await first.began.wait()
        held = await kube.get_lease("default", "triage-operator")
        task.cancel()
        await asyncio.wait((task,))
    released = await kube.get_lease("default", "triage-operator")
    assert held is not None
    assert released is not None
    # As a killed process leaves it: held, and just renewed.
    await kube.replace_lease("default", "triage-operator", {**released, "spec": held["spec"]})
    async with again.standing():
        async with asyncio.timeout(1):
            await again.began.wait()


async def test_a_leader_that_cannot_renew_stops_before_its_lease_runs_out(
    cluster: Cluster, kube: Kube
) -> None:
    candidate = Candidate(kube, "cut off", renew_deadline_seconds=0.2)
    async with candidate.standing():
        await candidate.began.wait()
        cluster.server.faults.answer(Answer(target="leases", status=500, left=1000))
        async with asyncio.timeout(2):
            await candidate.ended.wait()
        assert not candidate.leadership.leading


async def test_a_leader_whose_lease_was_taken_stops(kube: Kube) -> None:
    candidate = Candidate(kube, "first")
    async with candidate.standing():
        await candidate.began.wait()
        while True:
            lease = await kube.get_lease("default", "triage-operator")
            assert lease is not None
            taken = {**lease, "spec": {**lease["spec"], "holderIdentity": "thief"}}
            if await _replaced(kube, taken):
                break
        async with asyncio.timeout(2):
            await candidate.ended.wait()


async def test_an_error_of_the_leader_is_raised_and_the_lease_released(kube: Kube) -> None:
    candidate = Candidate(kube, "failing")
    candidate.fail.set()
    async with candidate.standing() as task:
        with pytest.raises(ArithmeticError):
            await task
    lease = await kube.get_lease("default", "triage-operator")
    assert lease is not None
    assert "holderIdentity" not in lease["spec"]


async def _replaced(kube: Kube, lease: Object) -> bool:
    try:
        await kube.replace_lease("default", "triage-operator", lease)
    except KubeConflictError:
        return False
    return True
