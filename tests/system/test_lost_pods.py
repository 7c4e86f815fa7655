"""Attempts lost in every way, each in the worst place: one issue, one answer, and the cause is told."""

import asyncio
import signal

import pytest

from support.own_agents import own_agent
from support.site import Site
from support.system import System
from triage_local.demo.holds import Place, holding

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_run_killed_after_its_write_files_no_second_issue(system: System, site: Site) -> None:
    async with holding(site.engine, "killed", Place.AFTER_WRITE) as hold:
        await site.create_run("killed")
        await hold.reached()
        await site.kill("killed")
        await hold.cut_off()
        status = await site.succeeded("killed", ["sigkill"])
    assert await site.suppressed("killed") == (1, 0)
    asked = [request.step for request in site.cluster.model.asked(site.report("killed"))]
    assert asked == ["list_pages", "read_page", "file_issue", "text"]
    assert status["toolCalls"] == {"begun": 3, "done": 3, "suppressed": 1}
    assert (status["attempt"], status["resumes"], status["lastCause"]) == (2, 1, "sigkill")
    assert status["recoverySeconds"] > 0
    await site.told("killed", "Starting", "Lost", "Resuming", "Completed")
    labels = {"namespace": site.namespace, "cause": "sigkill"}
    assert await system.counted("triage_losses_total", **labels) == 1
    assert await system.counted("triage_resumes_total", **labels) == 1
    assert await system.counted("triage_recovery_seconds_count", **labels) == 1
    duplicates = {"namespace": site.namespace, "tool": "file_issue", "where": "journal"}
    assert await system.counted("triage_duplicates_suppressed_total", **duplicates) == 1


async def test_a_run_out_of_memory_goes_on_with_more_of_it(system: System, site: Site) -> None:
    limits = {"limits": {"memory": "256Mi"}}
    await site.create_agent(
        "hungry", **own_agent("hungry"), resources=limits, resume={"memory": {"factor": 2}}
    )
    await site.create_run("hungry", agentRef={"name": "hungry"})
    status = await site.ended("hungry")
    assert status["phase"] == "Succeeded", status
    causes = [one.get("cause") for one in status["attempts"]]
    # Memory that goes from one heartbeat to the next may end a second attempt before the kubelet tells of the first.
    assert causes in (["oom", None], ["oom", "oom", None])
    assert [status["attempts"][number]["memoryLimit"] for number in (0, -1)] == ["256Mi", "512Mi"]
    assert status["noProgress"] == 0
    losses = await system.counted("triage_losses_total", namespace=site.namespace, cause="oom")
    assert losses == len(causes) - 1


async def test_a_run_out_of_memory_at_the_cap_fails_and_says_so(site: Site) -> None:
    limits = {"limits": {"memory": "256Mi"}}
    resume = {"memory": {"limit": "256Mi"}, "maxNoProgress": 1}
    await site.create_agent("hungry", **own_agent("hungry"), resources=limits, resume=resume)
    await site.create_run("hungry", agentRef={"name": "hungry"})
    status = await site.ended("hungry")
    assert status["phase"] == "Failed"
    assert {one["cause"] for one in status["attempts"]} == {"oom"}
    (message,) = await site.told("hungry", "NoProgress")
    assert "oom in eat" in message


async def test_a_drain_moves_a_run_to_another_node(system: System, site: Site) -> None:
    async with holding(site.engine, "drained", Place.IN_TOOL) as hold:
        await site.create_run("drained")
        await hold.reached()
        node = (await site.pod("drained"))["spec"]["nodeName"]
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(site.cluster.kubelet.drain(node))
                await site.asked_to_leave("drained")
                await hold.release()
                status = await site.succeeded("drained", ["drain"])
        finally:
            await site.cluster.kubelet.cordon(node, unschedulable=False)
    assert status["attempts"][0]["outcome"] == "handed_off"
    assert status["attempts"][1]["node"] != node
    # Its tool ended within the grace period: nothing had to be done again.
    assert await site.suppressed("drained") == (0, 0)
    assert status["noProgress"] == 0
    await site.told("drained", "HandedOff", "Resuming", "Completed")


async def test_a_cordoned_node_is_left_before_any_eviction(site: Site) -> None:
    async with holding(site.engine, "moved", Place.IN_TOOL) as hold:
        await site.create_run("moved")
        await hold.reached()
        node = (await site.pod("moved"))["spec"]["nodeName"]
        await site.cluster.kubelet.cordon(node)
        try:
            await site.told("moved", "HandingOff")
            await site.asked_to_hand_off("moved")
            await hold.release()
            status = await site.succeeded("moved", ["drain"])
        finally:
            await site.cluster.kubelet.cordon(node, unschedulable=False)
    assert status["attempts"][0]["outcome"] == "handed_off"
    assert status["attempts"][1]["node"] != node
    assert await site.suppressed("moved") == (0, 0)


async def test_a_node_that_an_autoscaler_is_about_to_take_away_is_left_at_the_next_boundary(
    system: System, site: Site
) -> None:
    taint = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1764565200", "effect": "NoSchedule"}
    async with holding(site.engine, "doomed", Place.IN_TOOL) as hold:
        await site.create_run("doomed")
        await hold.reached()
        pod = await site.pod("doomed")
        node = pod["spec"]["nodeName"]
        await site.taint_node(node, taint)
        try:
            (message,) = await site.told("doomed", "HandingOff")
            await site.asked_to_hand_off("doomed")
            await hold.release()
            status = await site.succeeded("doomed", ["drain"])
        finally:
            await site.taint_node(node)
    assert taint["key"] in message
    assert status["attempts"][0]["outcome"] == "handed_off"
    assert status["attempts"][1]["node"] != node
    assert status["toolCalls"] == {"begun": 3, "done": 3, "suppressed": 0}
    # It left by itself: nobody had evicted it.
    assert "DisruptionTarget" not in str((await site.pod("doomed"))["status"])
    labels = {"namespace": site.namespace, "cause": "drain"}
    assert await system.counted("triage_resumes_total", **labels) == 1


@pytest.mark.parametrize(
    ("grace_seconds", "causes"), [(None, {"deleted"}), (0, {"vanished", "deleted", "sigterm"})]
)
async def test_a_deleted_pod_is_followed_by_another(
    site: Site, grace_seconds: int | None, causes: set[str]
) -> None:
    async with holding(site.engine, "deleted", Place.IN_TOOL) as hold:
        await site.create_run("deleted")
        await hold.reached()
        pod = await site.pod("deleted")
        await site.delete("Pod", pod["metadata"]["name"], grace_seconds=grace_seconds)
        if grace_seconds is None:
            await site.asked_to_leave("deleted")
        await hold.release()
        status = await site.ended("deleted")
    cause = status["attempts"][0]["cause"]
    assert cause in causes
    await site.succeeded("deleted", [cause])


async def test_a_run_that_crashes_again_and_again_is_given_up(system: System, site: Site) -> None:
    resume = {"maxNoProgress": 2, "backoff": {"initialSeconds": 1}}
    await site.create_agent("crashing", **own_agent("leaving", EXITS="9", EXIT_CODE="3"), resume=resume)
    await site.create_run("crashing", agentRef={"name": "crashing"})
    status = await site.ended("crashing")
    assert status["phase"] == "Failed"
    # The first one left the model's reply.
    assert [one["cause"] for one in status["attempts"]] == ["app_error"] * 3
    assert status["noProgress"] == 2
    (message,) = await site.told("crashing", "NoProgress")
    assert "Attempts in a row that left nothing new: 2; the last one ended with app_error in leave" in message
    refused = {"namespace": site.namespace, "reason": "NoProgress"}
    assert await system.counted("triage_resumes_refused_total", **refused) == 1


async def test_nothing_is_resumed_where_nothing_may_be(site: Site) -> None:
    await site.create_agent(
        "crashing", **own_agent("leaving", EXITS="1", EXIT_CODE="3"), resume={"maxNoProgress": 0}
    )
    await site.create_run("crashing", agentRef={"name": "crashing"})
    status = await site.ended("crashing")
    assert status["phase"] == "Failed"
    assert len(status["attempts"]) == 1
    assert status["resumes"] == 0
    (message,) = await site.told("crashing", "NoProgress")
    assert "maxNoProgress is 0" in message


async def test_an_exit_with_zero_in_the_middle_is_a_loss(site: Site) -> None:
    await site.create_agent("leaving", **own_agent("leaving", EXITS="1", EXIT_CODE="0"))
    await site.create_run("leaving", agentRef={"name": "leaving"})
    status = await site.ended("leaving")
    assert status["phase"] == "Succeeded"
    assert status["output"] == "Done."
    assert [one.get("cause") for one in status["attempts"]] == ["exit0_unfinished", None]


async def test_a_process_that_is_silent_on_a_healthy_node_is_replaced_and_removed(site: Site) -> None:
    await site.change("TriageAgent", "default", podTemplate={"spec": {"terminationGracePeriodSeconds": 1}})
    async with holding(site.engine, "silent", Place.AFTER_WRITE) as hold:
        await site.create_run("silent")
        await hold.reached()
        pod = (await site.pod("silent"))["metadata"]["name"]
        site.cluster.kubelet.kill(site.namespace, pod, signal.SIGSTOP)
        await site.pod("silent", 2)
        await site.pods.until(lambda pods: pod not in pods or None, "the silent pod is gone")
        await hold.release()
        await site.succeeded("silent", ["unresponsive"])
    assert await site.suppressed("silent") == (1, 0)


async def test_a_process_that_wakes_up_after_its_successor_changes_nothing(site: Site) -> None:
    async with holding(site.engine, "frozen", Place.IN_TOOL) as hold:
        await site.create_run("frozen")
        await hold.reached()
        zombie = await site.container("frozen")
        node = (await site.pod("frozen"))["spec"]["nodeName"]
        await site.cluster.kubelet.lose(node, signal.SIGSTOP)
        try:
            await site.cluster.kubelet.declare_unreachable(node)
            await site.pod("frozen", 2)
            await hold.release()
            status = await site.ended("frozen")
        finally:
            await site.cluster.kubelet.recover(node)
        await zombie.reap()
    assert status["attempts"][1]["node"] != node
    assert zombie.exit_code == 84  # fenced
    await site.succeeded("frozen", [status["attempts"][0]["cause"]])


async def test_a_node_that_is_switched_off_costs_a_run_one_attempt(site: Site) -> None:
    async with holding(site.engine, "dark", Place.AFTER_WRITE) as hold:
        await site.create_run("dark")
        await hold.reached()
        node = (await site.pod("dark"))["spec"]["nodeName"]
        await site.cluster.kubelet.lose(node, signal.SIGKILL)
        try:
            await site.cluster.kubelet.declare_unreachable(node)
            await hold.cut_off()
            status = await site.ended("dark")
        finally:
            await site.cluster.kubelet.recover(node)
        first = await site.until(
            "dark", lambda seen: seen["status"]["attempts"][0].get("cause"), "has a cause"
        )
    assert status["attempts"][1]["node"] != node
    await site.succeeded("dark", [first])
