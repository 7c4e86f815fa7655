"""Agents that change, are wrong or are gone while their runs are at work: nothing is lost once they are mended."""

import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.own_agents import OWN_IMAGE, own_agent
from support.site import Site
from triage_contract.states import Phase
from triage_local.demo.holds import Place, holding

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_run_whose_agent_is_gone_waits_for_it(site: Site) -> None:
    async with holding(site.engine, "orphaned", Place.AFTER_WRITE) as hold:
        await site.create_run("orphaned")
        await hold.reached()
        await site.delete("TriageAgent", "default")
        await site.kill("orphaned")
        await hold.cut_off()
        assert f"{site.namespace}/default" in await site.held_up("orphaned", "UnknownAgent")
        await site.create_agent("default")
        await site.succeeded("orphaned", ["sigkill"])
    assert await site.suppressed("orphaned") == (1, 0)


async def test_a_blocked_pod_is_made_anew_as_the_agent_is_now(site: Site) -> None:
    image = site.cluster.agent["spec"]["image"]
    await site.change("TriageAgent", "default", image="registry.invalid/not-there:2")
    await site.create_run("blocked")
    assert "registry.invalid/not-there:2" in await site.held_up("blocked", "StartBlocked")
    await site.change("TriageAgent", "default", image=image)
    status = await site.succeeded("blocked", ["rollout"])
    assert (status["resumes"], status["noProgress"]) == (0, 0)
    assert [one["image"] for one in status["attempts"]] == ["registry.invalid/not-there:2", image]


async def test_a_wrong_pod_template_is_named_and_mended(site: Site) -> None:
    await site.change("TriageAgent", "default", podTemplate={"spec": {"containers": "none"}})
    await site.create_run("patient")
    said = await site.held_up("patient", "BadAgent")
    assert "spec.podTemplate.spec.containers: must be a list" in said
    template = {"spec": {"containers": None, "terminationGracePeriodSeconds": "soon"}}
    await site.change("TriageAgent", "default", podTemplate=template)
    assert "terminationGracePeriodSeconds" in await site.held_up("patient", "PodRefused")
    await site.change("TriageAgent", "default", podTemplate={"spec": {"terminationGracePeriodSeconds": 20}})
    await site.succeeded("patient")


async def test_a_sidecar_neither_keeps_an_attempt_alive_nor_a_run_from_its_end(site: Site) -> None:
    sidecar = {"name": "sidecar", "image": OWN_IMAGE, "command": ["sleep", "600"]}
    await site.change("TriageAgent", "default", podTemplate={"spec": {"containers": [sidecar]}})
    async with holding(site.engine, "accompanied", Place.AFTER_WRITE) as hold:
        await site.create_run("accompanied")
        await hold.reached()
        pod = (await site.pod("accompanied"))["metadata"]["name"]
        agent = site.cluster.kubelet.container(site.namespace, pod, "agent")
        agent.signal_main(signal.SIGKILL)
        await agent.reap()
        await hold.cut_off()
        await site.succeeded("accompanied", ["sigkill"])
    await site.pods.until(lambda pods: pod not in pods or None, "the pod with a sidecar alone is gone")


async def test_an_undeclared_tool_runs_again_under_its_key_where_the_agent_wants_it(
    site: Site, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    await site.create_agent(
        "notifying", **own_agent("notifying", MARKS=str(marks)), resume={"inDoubt": "Retry"}
    )
    await site.create_run("notified", agentRef={"name": "notifying"})
    assert (await site.ended("notified"))["phase"] == Phase.SUCCEEDED
    first, second = marks.read_text().split()
    assert first == second
    condition = await site.agent_condition("notifying", "ToolsDeclared")
    assert condition["status"] == "False"
    assert "notify" in condition["message"]


async def test_the_examples_run(site: Site) -> None:
    await site.delete("TriageAgent", "default")
    await site.patch_secret("triage-database", {"pooled-url": site.cluster.database_url})
    await site.label_node("node-1", {"node.example/lifecycle": "spot"})
    names = []
    for manifest in _examples():
        await site.create(manifest)
        if manifest["kind"] == "TriageRun":
            names.append(manifest["metadata"]["name"])
    for name in names:
        await site.succeeded(name)
    assert len(names) == 3


def _examples() -> list[dict[str, Any]]:
    folder = Path(__file__).parents[2] / "examples"
    return [
        manifest
        for path in sorted(folder.glob("*.yaml"))
        if path.name != "github.yaml"  # which no cluster of ours can reach
        for manifest in yaml.safe_load_all(path.read_text())
    ]
