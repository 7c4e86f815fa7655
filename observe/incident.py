"""The incident: what befalls which run, in which order, and when."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from observe.operators import Operators, Window
from triage_contract.names import API_VERSION
from triage_contract.states import Phase, RolloutStrategy
from triage_local.demo.agents import FIRST_MEMORY, build_archived, build_pinned, build_undeclared
from triage_local.demo.holds import Hold, Place, holding
from triage_local.demo.losses import (
    Stage,
    decide_in_doubt,
    delete_while_operator_is_dead,
    drain,
    kill,
    kill_after_write,
    kill_half_done,
    run_out_of_memory,
)
from triage_local.demo.names import RunName
from triage_local.kubelet.cluster import MERGE
from triage_local.model.faults import Fault
from triage_local.objects import NAMESPACE

Json = dict[str, Any]

NEW_IMAGE: Final = "registry.example/docs-triage:0.1.0"
"""The same program under another name: what is deployed."""

_PATIENT: Final = "The model asks for patience at first."
_WENT_ON: Final = text(
    "SELECT count(*) > 0 FROM triage.attempts WHERE run_id = :run AND epoch > 1 AND first_write_at IS NOT NULL"
)
_ASKED_TO_LEAVE: Final = text(
    "SELECT count(*) > 0 FROM triage.attempts WHERE run_id = :run AND handoff_requested_at IS NOT NULL"
)


class MoreRuns(StrEnum):
    """The runs of the incident that the demo does not have."""

    DEPLOYED = "deployed"
    FROZEN = "frozen"
    AT_THE_CAP = "at-the-cap"
    PATIENT = "patient"
    OLD_LEADER = "old-leader"
    NEW_LEADER = "new-leader"


@dataclass(slots=True, kw_only=True)
class Incident:
    """When what took place."""

    began: datetime
    restarts: dict[str, Window] = field(default_factory=dict)
    """From before an operator left until another one had been seen for a while, by what took place."""


async def let_it_happen(
    stage: Stage, operators: Operators, folder: Path, *, alerted: Callable[[], Awaitable[None]]
) -> Incident:
    """Start the runs, lose most of them, and see them end.

    Args:
        stage: Where it takes place.
        operators: Who works on the runs.
        folder: With the archive of issues that does not fit into an agent's memory.
        alerted: Waits until an alert tells of the call in doubt.

    Raises:
        PatienceError: Something did not come about.
    """
    incident = Incident(began=datetime.now(UTC))
    async with AsyncExitStack() as stack:

        async def held(run: str, place: Place = Place.IN_TOOL) -> Hold:
            return await stack.enter_async_context(holding(stage.engine, run, place))

        killed = await held(RunName.KILLED, Place.AFTER_WRITE)
        half_done = await held(RunName.HALF_DONE)
        drained = await held(RunName.DRAINED)
        in_doubt = await held(RunName.IN_DOUBT)
        away = await held(RunName.OPERATOR_AWAY)
        deployed = await held(MoreRuns.DEPLOYED)
        frozen = await held(MoreRuns.FROZEN)
        old = await held(MoreRuns.OLD_LEADER, Place.AFTER_WRITE)
        new = await held(MoreRuns.NEW_LEADER, Place.AFTER_WRITE)
        quiet = await _start_runs(stage, folder)
        async with asyncio.TaskGroup() as group:
            group.create_task(run_out_of_memory(stage))
            group.create_task(run_out_of_memory(stage, MoreRuns.AT_THE_CAP))
            group.create_task(decide_in_doubt(stage, in_doubt, alerted))
            group.create_task(_deploy(stage, deployed))
            await kill_after_write(stage, killed)
            await kill_half_done(stage, half_done)
            await drain(stage, drained)
            await _freeze(stage, frozen, quiet)
        async with operators.leaving("operator killed, another one in its place", incident.restarts):
            await delete_while_operator_is_dead(stage, away)
        async with operators.leaving("another operator leads", incident.restarts):
            await old.reached()
            await kill(stage, MoreRuns.OLD_LEADER, "and its operator leaves")
            await old.cut_off()
            await operators.change_leader()
            stage.story.done("operator", "gives up its lead; the one that stood by takes over")
            await new.reached()
            await kill(stage, MoreRuns.NEW_LEADER, "and another operator leads")
            await new.cut_off()
            await stage.until(_WENT_ON, MoreRuns.OLD_LEADER, "goes on")
            await stage.until(_WENT_ON, MoreRuns.NEW_LEADER, "goes on")
        await stage.runs.until(lambda runs: all(map(_is_over, runs.values())) or None, "all runs end")
    return incident


async def _start_runs(stage: Stage, folder: Path) -> str:
    """Start all runs but the one to be frozen, and give the node that stays."""
    cluster = stage.cluster
    await _create_run(stage, RunName.DRAINED, "default")
    node = (await stage.pod(RunName.DRAINED))["spec"]["nodeName"]
    nodes = await cluster.api.request("GET", "/api/v1/nodes")
    quiet: str = next(name for each in nodes["items"] if (name := each["metadata"]["name"]) != node)
    pinned = build_pinned(cluster.agent, quiet)
    archived = build_archived(cluster.agent, quiet, folder)
    await cluster.create(pinned)
    await cluster.create(build_undeclared(cluster.agent, quiet))
    await cluster.create(archived)
    await cluster.create(
        _changed(archived, "capped", resume={"memory": {"factor": 2, "limit": FIRST_MEMORY}})
    )
    await cluster.create(_changed(pinned, "deployed", rollout={"strategy": RolloutStrategy.RESTART.value}))
    cluster.model.faults.add(Fault(status=429, retry_after_seconds=2, report=_PATIENT, times=1))
    for run, agent in (
        (RunName.KILLED, "pinned"),
        (RunName.HALF_DONE, "pinned"),
        (RunName.IN_DOUBT, "undeclared"),
        (RunName.OUT_OF_MEMORY, "archived"),
        (MoreRuns.AT_THE_CAP, "capped"),
        (MoreRuns.DEPLOYED, "deployed"),
        (MoreRuns.PATIENT, "pinned"),
        (RunName.OPERATOR_AWAY, "pinned"),
        (MoreRuns.OLD_LEADER, "pinned"),
        (MoreRuns.NEW_LEADER, "pinned"),
    ):
        await _create_run(stage, run, agent)
    return quiet


async def _create_run(stage: Stage, run: str, agent: str) -> None:
    at_once = " Read it and file the issue by two calls at once." if run == RunName.HALF_DONE else ""
    patience = f" {_PATIENT}" if run == MoreRuns.PATIENT else ""
    report = f"[{run}] The tokens page says that deploy tokens never expire. They do.{at_once}{patience}"
    await stage.cluster.create(
        {
            "apiVersion": API_VERSION,
            "kind": "TriageRun",
            "metadata": {"name": run, "namespace": NAMESPACE},
            "spec": {"agentRef": {"name": agent}, "report": report},
        }
    )


async def _deploy(stage: Stage, hold: Hold) -> None:
    """Give a run's agent another image while it is in the middle of a tool."""
    run = MoreRuns.DEPLOYED
    await hold.reached()
    path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/triageagents/deployed"
    stage.lose(run, f"deploy {NEW_IMAGE}: its agent is changed")
    await stage.cluster.api.request("PATCH", path, {"spec": {"image": NEW_IMAGE}}, content_type=MERGE)
    await stage.until(_ASKED_TO_LEAVE, run, "is asked to hand off")
    await hold.release()
    await stage.until(_WENT_ON, run, "goes on")


async def _freeze(stage: Stage, hold: Hold, quiet: str) -> None:
    """Let a node freeze with a run on it, and wake up when another pod has finished that run."""
    run, kubelet = MoreRuns.FROZEN, stage.cluster.kubelet
    node = await _other_node(stage, quiet)
    await kubelet.cordon(node, unschedulable=False)
    await _create_run(stage, run, "default")
    await hold.reached()
    pod = await stage.pod(run)
    if pod["spec"]["nodeName"] != node:
        raise AssertionError(f"{run} is on {pod['spec']['nodeName']}, where all the others are")
    zombie = kubelet.container(NAMESPACE, pod["metadata"]["name"])
    stage.lose(run, f"{node} freezes, with all of its processes")
    await kubelet.lose(node, signal.SIGSTOP)
    try:
        await kubelet.declare_unreachable(node)
        await stage.until(_WENT_ON, run, "goes on elsewhere")
        await hold.release()
        await stage.runs.until(lambda runs: _is_over(runs[run]) or None, f"{run} ends")
    finally:
        await kubelet.recover(node)
    stage.story.done(run, f"{node} wakes up: its process goes on, and finds that it may not")
    await zombie.reap()


async def _other_node(stage: Stage, quiet: str) -> str:
    nodes = await stage.cluster.api.request("GET", "/api/v1/nodes")
    (other,) = (name for each in nodes["items"] if (name := each["metadata"]["name"]) != quiet)
    return str(other)


def _changed(agent: Json, name: str, **spec: Any) -> Json:
    return {**agent, "metadata": {**agent["metadata"], "name": name}, "spec": {**agent["spec"], **spec}}


def _is_over(run: Json) -> bool:
    phase = (run.get("status") or {}).get("phase")
    return phase is not None and Phase(phase).terminal
