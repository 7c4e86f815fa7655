"""What users make of runs in the middle of their work: cancelled, suspended, deleted, bounded in time."""

from datetime import UTC, datetime

import pytest

from support.kind.site import KindSite
from triage_contract.states import Phase
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_a_cancelled_run_does_nothing_more(site: KindSite) -> None:
    async with holding(site.engine, "cancelled", Place.IN_TOOL) as hold:
        await site.create_run("cancelled")
        await hold.reached()
        process = await site.process("cancelled")
        await site.change("TriageRun", "cancelled", cancel=True)
        status = await site.ended("cancelled")
        await hold.cut_off()
    assert status["phase"] == Phase.CANCELLED
    assert [one["outcome"] for one in status["attempts"]] == ["cancelled"]
    await process.ended()
    assert (await site.issues("cancelled"), await site.answers("cancelled")) == ([], 0)


async def test_a_suspended_run_leaves_its_pod_and_goes_on_where_it_was(site: KindSite) -> None:
    async with holding(site.engine, "suspended", Place.IN_TOOL) as hold:
        await site.create_run("suspended")
        await hold.reached()
        process = await site.process("suspended")
        await site.change("TriageRun", "suspended", suspend=True)
        await site.progress("suspended", "HandingOff")
        await site.asked_to_hand_off("suspended")
        await hold.release()
        await site.phase("suspended", Phase.SUSPENDED)
    await process.ended()
    resumed_at = datetime.now(UTC)
    await site.change("TriageRun", "suspended", suspend=False)
    await site.went_on("resumed after a suspension", "suspended", resumed_at)
    await site.succeeded("suspended", ["suspended"])
    assert await site.suppressed("suspended") == (0, 0)


async def test_a_deleted_run_takes_its_pod_along(site: KindSite) -> None:
    async with holding(site.engine, "unwanted", Place.IN_TOOL) as hold:
        await site.create_run("unwanted")
        await hold.reached()
        process, uid = await site.process("unwanted"), site.uid("unwanted")
        await site.delete("TriageRun", "unwanted")
        await site.runs.until(lambda runs: not runs or None, "the run is gone")
        await hold.cut_off()
    await process.ended()
    await site.pods.until(lambda pods: not pods or None, "its pod is gone")
    assert await site.issues_of(uid) == []


async def test_a_lost_run_that_has_ended_goes_with_its_pods_at_the_end_of_its_time(site: KindSite) -> None:
    async with holding(site.engine, "passing", Place.AFTER_WRITE) as hold:
        await site.create_run("passing", ttlSecondsAfterFinished=0)
        await hold.reached()
        uid = site.uid("passing")
        lost_at = await site.kill("passing")
        await hold.cut_off()
        await site.went_on("SIGKILL in the tool, after its write", "passing", lost_at)
    await site.runs.until(lambda runs: not runs or None, "the run is gone")
    await site.pods.until(lambda pods: not pods or None, "its pods are gone")
    assert len(await site.issues_of(uid)) == 1


async def test_a_missing_image_fails_the_run_at_its_start_deadline(site: KindSite) -> None:
    image = "registry.invalid/nothing:1"
    await site.create_agent("without-image", image=image)
    await site.create_run("unstartable", agentRef={"name": "without-image"}, startDeadlineSeconds=20)
    assert image in await site.held_up("unstartable", "StartBlocked")
    assert image in await site.finished_because("unstartable")
    assert (await site.ended("unstartable"))["phase"] == Phase.FAILED
    await site.told("unstartable", "StartDeadlineExceeded")
    await site.pods.until(lambda pods: not pods or None, "its pod is gone")
    assert await site.stored("unstartable") == []
