"""Pods lost one at a time: one issue, one answer, and the cause is told."""

import asyncio
from datetime import UTC, datetime

import pytest

from support.kind.cluster import Kind
from support.kind.site import KindSite
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_an_undisturbed_run_takes_one_attempt(site: KindSite) -> None:
    await site.create_run("undisturbed")
    status = await site.succeeded("undisturbed")
    assert (status["attempt"], status.get("resumes", 0)) == (1, 0)


async def test_a_run_killed_after_its_write_files_no_second_issue(site: KindSite) -> None:
    lost_at = await site.kill_after_write("killed")
    await site.went_on("SIGKILL in the tool, after its write", "killed", lost_at)
    await site.succeeded("killed", ["sigkill"])
    assert await site.suppressed("killed") == (1, 0)


async def test_an_oom_kill_gives_the_next_attempt_more_memory(site: KindSite) -> None:
    await site.create_own_agent(
        "hungry", "hungry", resources={"limits": {"memory": "256Mi"}}, resume={"memory": {"factor": 2}}
    )
    await site.create_run("hungry", agentRef={"name": "hungry"})
    status = await site.ended("hungry")
    assert status["phase"] == "Succeeded", status
    causes = [one.get("cause") for one in status["attempts"]]
    # Memory that goes from one heartbeat to the next may end a second attempt before the kubelet tells of the first.
    assert causes in (["oom", None], ["oom", "oom", None])
    assert [status["attempts"][number]["memoryLimit"] for number in (0, -1)] == ["256Mi", "512Mi"]


async def test_an_oom_kill_at_the_cap_fails_and_says_so(site: KindSite) -> None:
    resume = {"memory": {"limit": "256Mi"}, "maxNoProgress": 1}
    await site.create_own_agent("hungry", "hungry", resources={"limits": {"memory": "256Mi"}}, resume=resume)
    await site.create_run("hungry", agentRef={"name": "hungry"})
    message = await site.finished_because("hungry")
    assert "oom in eat" in message, message
    assert await site.issues("hungry") == []


async def test_kubectl_drain_moves_a_run_to_another_node(kind: Kind, site: KindSite) -> None:
    async with holding(site.engine, "drained", Place.IN_TOOL) as hold:
        await site.create_run_on(kind.victim, "drained")
        await hold.reached()
        lost_at = datetime.now(UTC)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(kind.programs.drain(kind.victim))
                await site.asked_to_leave("drained")
                await hold.release()
            await site.went_on("kubectl drain", "drained", lost_at)
            status = await site.succeeded("drained", ["drain"])
        finally:
            await kind.programs.kubectl("uncordon", kind.victim)
    assert [one["node"] for one in status["attempts"]] == [kind.victim, kind.steady]
