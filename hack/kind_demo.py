"""Loses three runs on the cluster of ``make cluster``, by kubectl as a person does, and looks at what became of them.

Each command is printed, with what it said. The release is installed where there is none, and stays.
"""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import yaml

from support.kind.cluster import Kind, a_kind
from support.kind.site import KindSite
from support.sight import Json
from triage_contract.names import API_VERSION
from triage_local.demo.holds import Place, holding

_NAMESPACE: Final = "kind-demo"
_HUNGRY: Final = {"limits": {"memory": "256Mi"}}
_ATTEMPTS: Final = (
    "jsonpath={range .status.attempts[*]}"
    '{.pod} on {.node} with {.memoryLimit}: {.outcome} {.cause}{"\\n"}{end}'
)


async def main(kubeconfig: Path) -> None:
    """Show all. AssertionError: something did not hold."""
    async with a_kind(kubeconfig, [], keep=True) as kind, KindSite(kind, _NAMESPACE) as site:
        for show in (_killed, _out_of_memory, _drained):
            await show(kind, site)
        print("\nSeconds from the loss to the first thing that the next attempt stored:")
        for gap in kind.gaps:
            print(f"  {gap.case:<12} {gap.seconds:5.1f}")


async def _killed(kind: Kind, site: KindSite) -> None:
    _say(
        "A run is killed in its tool: its issue is filed, and neither the agent nor its session knows of it."
    )
    async with holding(site.engine, "killed", Place.AFTER_WRITE) as hold:
        await _apply(kind, site, "killed", "default")
        await hold.reached()
        await _kubectl(kind, "get", "triagerun,pods")
        pod = await site.pod("killed")
        container = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        print("$ docker exec", pod["spec"]["nodeName"], "ctr -n k8s.io tasks kill -s SIGKILL", container)
        lost_at = await site.kill("killed")
        await hold.cut_off()
        await site.went_on("SIGKILL", "killed", lost_at)
    await _look(kind, "killed")
    await site.succeeded("killed", ["sigkill"])
    assert await site.suppressed("killed") == (1, 0), (
        "the second attempt did not find the call of the first one"
    )
    print("One issue, one answer: the second attempt took the first one's result from the journal.")


async def _out_of_memory(kind: Kind, site: KindSite) -> None:
    _say("A run needs more memory than its limit of 256Mi, and its node kills it.")
    await site.create_own_agent("hungry", "hungry", resources=_HUNGRY, resume={"memory": {"factor": 2}})
    await _apply(kind, site, "hungry", "hungry")
    status = await site.ended("hungry")
    await _look(kind, "hungry")
    attempts = status["attempts"]
    assert status["phase"] == "Succeeded", status
    assert [one.get("cause") for one in attempts] in (["oom", None], ["oom", "oom", None]), attempts
    assert (attempts[0]["memoryLimit"], attempts[-1]["memoryLimit"]) == ("256Mi", "512Mi"), attempts
    print("The attempt after it got twice as much.")


async def _drained(kind: Kind, site: KindSite) -> None:
    _say("A node is drained while a run is in its tool.")
    pinned = {"kubernetes.io/hostname": kind.victim}
    await site.create_agent("movable", podTemplate={"spec": {"nodeSelector": pinned}})
    try:
        async with holding(site.engine, "drained", Place.IN_TOOL) as hold:
            await _apply(kind, site, "drained", "movable")
            await hold.reached()
            await site.change("TriageAgent", "movable", podTemplate={"spec": {"nodeSelector": None}})
            lost_at = datetime.now(UTC)
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    _kubectl(
                        kind, "drain", kind.victim, "--ignore-daemonsets", "--force", "--delete-emptydir-data"
                    )
                )
                await site.asked_to_leave("drained")
                await hold.release()
            await site.went_on("drain", "drained", lost_at)
        await _look(kind, "drained")
        status = await site.succeeded("drained", ["drain"])
        assert [one["node"] for one in status["attempts"]] == [kind.victim, kind.steady], status
    finally:
        await _kubectl(kind, "uncordon", kind.victim)
    print("The tool was let to its end; the run went on from there on the other node.")


async def _apply(kind: Kind, site: KindSite, run: str, agent: str) -> None:
    spec: Json = {"agentRef": {"name": agent}, "report": site.report(run)}
    manifest = {"apiVersion": API_VERSION, "kind": "TriageRun", "metadata": {"name": run}, "spec": spec}
    await _kubectl(kind, "apply", "--filename=-", stdin=yaml.safe_dump(manifest, sort_keys=False))
    await site.pod(run)


async def _look(kind: Kind, run: str) -> None:
    await _kubectl(
        kind, "wait", f"triagerun/{run}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=120s"
    )
    await _kubectl(kind, "get", "triagerun", run)
    await _kubectl(kind, "get", "triagerun", run, f"--output={_ATTEMPTS}")


async def _kubectl(kind: Kind, *arguments: str, stdin: str = "") -> None:
    command = ("--namespace", _NAMESPACE, *arguments)
    print("$ kubectl", *command, *(("<<END", f"\n{stdin}END") if stdin else ()))
    print(await kind.programs.kubectl(*command, stdin=stdin))


def _say(text: str) -> None:
    print(f"\n== {text}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
