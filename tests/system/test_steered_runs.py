"""What users make of their runs: suspended, cancelled, bounded in time and number, deleted."""

import asyncio
from datetime import datetime
from itertools import pairwise
from uuid import UUID

import pytest

from support.own_agents import own_agent
from support.site import Site
from support.system import System
from triage_contract.states import Phase
from triage_local.demo.holds import Place, holding
from triage_local.kubelet.exceptions import ClusterError
from triage_local.model import Fault

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOWHERE = {"podTemplate": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}}}}


async def test_a_suspended_run_leaves_its_pod_and_goes_on_where_it_was(site: Site) -> None:
    async with holding(site.engine, "suspended", Place.IN_TOOL) as hold:
        await site.create_run("suspended")
        await hold.reached()
        process = await site.container("suspended")
        await site.change("TriageRun", "suspended", suspend=True)
        await site.progress("suspended", "HandingOff")
        await site.asked_to_hand_off("suspended")
        await hold.release()
        status = await site.phase("suspended", Phase.SUSPENDED)
        await process.reap()
        assert len(status["attempts"]) == 1
        await site.change("TriageRun", "suspended", suspend=False)
        await site.succeeded("suspended", ["suspended"])
    assert await site.suppressed("suspended") == (0, 0)
    await site.told("suspended", "HandingOff", "HandedOff", "Suspended", "Resuming", "Completed")


async def test_a_cancelled_run_does_nothing_more(system: System, site: Site) -> None:
    async with holding(site.engine, "cancelled", Place.IN_TOOL) as hold:
        await site.create_run("cancelled")
        await site.create_run("never-begun", suspend=True)
        await hold.reached()
        process = await site.container("cancelled")
        for name in ("cancelled", "never-begun"):
            await site.change("TriageRun", name, cancel=True)
            assert (await site.ended(name))["phase"] == Phase.CANCELLED
        await hold.cut_off()
        await process.reap()
    assert await site.issues("cancelled") == []
    assert [one.get("outcome") for one in (await site.ended("cancelled"))["attempts"]] == ["cancelled"]
    assert await system.counted("triage_runs_ended_total", namespace=site.namespace, state="cancelled") == 2


async def test_runs_that_are_too_late_fail_and_leave_no_pod(site: Site) -> None:
    site.cluster.model.faults.add(Fault(hang=True, times=9, report=site.namespace))
    await site.create_agent("nowhere", **NOWHERE)
    await site.create_agent("unknown-image", image="registry.invalid/nothing:1")
    await site.create_run("slow", deadlineSeconds=8)
    await site.create_run("without-a-node", agentRef={"name": "nowhere"}, startDeadlineSeconds=1)
    await site.create_run("without-an-image", agentRef={"name": "unknown-image"}, startDeadlineSeconds=1)
    for name, reason, said in (
        ("slow", "DeadlineExceeded", "8 s"),
        ("without-a-node", "StartDeadlineExceeded", "2 node(s) didn't match Pod's node affinity/selector"),
        ("without-an-image", "StartDeadlineExceeded", "registry.invalid/nothing:1"),
    ):
        assert (await site.ended(name))["phase"] == Phase.FAILED
        assert said in await site.finished_because(name)
        await site.told(name, reason)
    await site.pods.until(lambda pods: not pods or None, "all pods are gone")


async def test_a_finished_run_goes_with_its_pods_at_the_end_of_its_time(site: Site) -> None:
    await site.create_run("passing", ttlSecondsAfterFinished=0)
    uid = await site.until("passing", lambda seen: UUID(seen["metadata"]["uid"]), "exists")
    await site.runs.until(lambda runs: "passing" not in runs or None, "the run is gone")
    await site.pods.until(lambda pods: not pods or None, "its pods are gone")
    assert len(await site.issues_of(uid)) == 1


async def test_max_running_lets_runs_through_one_after_the_other(site: Site) -> None:
    await site.create_agent("narrow", concurrency={"maxRunning": 1})
    names = ["first", "second", "third"]
    for name in names:
        await site.create_run(name, agentRef={"name": "narrow"})
        await site.until(name, lambda seen: "phase" in seen.get("status", {}) or None, "is seen")
    statuses = [await site.succeeded(name) for name in names]
    spans = [
        tuple(datetime.fromisoformat(status["attempts"][0][key]) for key in ("startedAt", "endedAt"))
        for status in statuses
    ]
    for (_, ended), (started, _) in pairwise(spans):
        assert ended <= started
    await site.told("third", "Queued", "Starting", "Completed")


async def test_runs_can_be_deleted_at_any_moment(system: System, site: Site) -> None:
    site.cluster.model.faults.add(Fault(hang=True, report=site.report("working")))
    await site.create_agent("nowhere", **NOWHERE)
    backoff = {"backoff": {"initialSeconds": 600, "maxSeconds": 600}}
    await site.create_agent("crashing", **own_agent("leaving", EXITS="9", EXIT_CODE="3"), resume=backoff)
    await site.create_run("waiting", agentRef={"name": "missing"})
    await site.create_run("pending", agentRef={"name": "nowhere"})
    await site.create_run("working")
    await site.create_run("backing-off", agentRef={"name": "crashing"})
    await site.create_run("finished")
    await site.held_up("waiting", "UnknownAgent")
    await site.held_up("pending", "Unschedulable")
    await site.phase("working", Phase.RUNNING)
    await site.progress("backing-off", "BackingOff")
    await site.succeeded("finished")
    names = list(site.runs.objects)
    uids = [site.uid(name) for name in names]
    process = await site.container("working")
    ours = (*site.runs.objects.values(), *site.pods.objects.values(), *site.agents.objects.values())
    assert not any(each["metadata"].get("finalizers") for each in ours)
    for name in names:
        await site.delete("TriageRun", name)
    await site.runs.until(lambda runs: not runs or None, "all runs are gone")
    await site.pods.until(lambda pods: not pods or None, "all pods are gone")
    await process.reap()
    rows = await system.values("SELECT name, state FROM triage.runs WHERE id = ANY(:uids)", uids=uids)
    states = dict(rows)
    assert states.pop("finished") == "succeeded"
    assert states.keys() >= {"pending", "working", "backing-off"}
    assert set(states.values()) == {"cancelled"}


async def test_a_name_taken_again_at_once_is_another_run(site: Site) -> None:
    site.cluster.model.faults.add(Fault(hang=True, report="Of the old one."))
    await site.create_run("same", report="Of the old one. The tokens page says that tokens never expire.")
    old = await site.container("same")
    await site.phase("same", Phase.RUNNING)
    uid = site.uid("same")
    await site.delete("TriageRun", "same")
    await site.create_run("same")
    await site.runs.until(
        lambda runs: ("same" in runs and site.uid("same") != uid) or None, "the new one is seen"
    )
    await site.succeeded("same")
    await old.reap()
    assert await site.issues_of(uid) == []


async def test_one_name_in_two_namespaces_is_two_runs(system: System, site: Site) -> None:
    async with system.site() as other:
        await site.create_run("same")
        await other.create_run("same")
        first, second = await asyncio.gather(site.succeeded("same"), other.succeeded("same"))
    assert first["issue"] != second["issue"]


async def test_a_namespace_with_runs_at_work_goes_at_once(system: System, site: Site) -> None:
    async with system.site() as other:
        site.cluster.model.faults.add(Fault(hang=True, times=2, report=other.namespace))
        # An agent waits for a model's reply as long as its grace period lets it.
        await other.change(
            "TriageAgent", "default", podTemplate={"spec": {"terminationGracePeriodSeconds": 6}}
        )
        for name in ("one", "two"):
            await other.create_run(name)
            await other.phase(name, Phase.RUNNING)
        async with asyncio.timeout(30):
            await other.close()
            await _until_gone(site, other.namespace)
    states = await system.values(
        "SELECT state FROM triage.runs WHERE namespace = :namespace", namespace=other.namespace
    )
    assert states == [("cancelled",)] * 2


async def _until_gone(site: Site, namespace: str) -> None:
    # A real namespace controller looks again some seconds after the last object has gone.
    while True:
        try:
            await site.cluster.api.request("GET", f"/api/v1/namespaces/{namespace}")
        except ClusterError as error:
            if error.status == 404:
                return
            raise
        await asyncio.sleep(0.1)
