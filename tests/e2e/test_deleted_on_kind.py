"""Pods and namespaces deleted under their runs, by a person with kubectl."""

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from support.kind.cluster import Kind
from support.kind.site import KindSite
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

_STATES = text("SELECT state FROM triage.runs WHERE namespace = :namespace")


async def test_kubectl_delete_lets_a_run_end_its_tool_and_go_on(kind: Kind, site: KindSite) -> None:
    async with holding(site.engine, "deleted", Place.IN_TOOL) as hold:
        await site.create_run("deleted")
        await hold.reached()
        name = (await site.pod("deleted"))["metadata"]["name"]
        lost_at = datetime.now(UTC)
        async with asyncio.TaskGroup() as group:
            group.create_task(kind.programs.kubectl("delete", "pod", name, "--namespace", site.namespace))
            await site.asked_to_leave("deleted")
            await hold.release()
        await site.went_on("kubectl delete pod", "deleted", lost_at)
    status = await site.succeeded("deleted", ["deleted"])
    assert status["attempts"][0]["outcome"] == "handed_off"
    assert await site.suppressed("deleted") == (0, 0)


async def test_a_process_that_outlives_its_deleted_pod_changes_nothing(kind: Kind, site: KindSite) -> None:
    async with holding(site.engine, "forced", Place.IN_TOOL) as hold:
        await site.create_run("forced")
        await hold.reached()
        zombie = await site.process("forced")
        name = (await site.pod("forced"))["metadata"]["name"]
        lost_at = datetime.now(UTC)
        # The pod's object is gone at once; its node kills the process a moment later.
        await kind.programs.kubectl(
            *("delete", "pod", name, "--force", "--grace-period=0", "--namespace", site.namespace)
        )
        await hold.release()
        await site.went_on("kubectl delete pod --force", "forced", lost_at)
    await zombie.ended()
    status = await site.ended("forced")
    cause = status["attempts"][0]["cause"]
    assert cause in ("deleted", "vanished")
    await site.succeeded("forced", [cause])


async def test_a_namespace_goes_with_the_runs_at_work_in_it(kind: Kind, site: KindSite) -> None:
    # The control plane looks again after half of the pods' grace period.
    await site.change("TriageAgent", "default", podTemplate={"spec": {"terminationGracePeriodSeconds": 8}})
    names = ("one", "two")
    async with site.held(*names) as holds:
        processes = [await site.process(name) for name in names]
        ours = (*site.runs.objects.values(), *site.pods.objects.values(), *site.agents.objects.values())
        assert not any(each["metadata"].get("finalizers") for each in ours)
        uids = [site.uid(name) for name in names]
        await kind.programs.kubectl("delete", "namespace", site.namespace)
        for hold in holds.values():
            await hold.cut_off()
    for process in processes:
        await process.ended()
    await site.close()
    assert [await site.issues_of(uid) for uid in uids] == [[], []]
    async with site.engine.connect() as connection:
        states = await connection.execute(_STATES, {"namespace": site.namespace})
        assert set(states.scalars()) == {"cancelled"}
