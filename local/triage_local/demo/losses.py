"""The losses. Each waits until its run is at the worst place, does what it is named after, and notes when."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_contract.names import API_VERSION, Annotation
from triage_contract.states import DecisionAction
from triage_local.cluster import LocalCluster
from triage_local.demo.asking import until_true
from triage_local.demo.following import Followed
from triage_local.demo.holds import Hold
from triage_local.demo.names import RunName
from triage_local.demo.story import Story
from triage_local.kubelet.cluster import MERGE
from triage_local.objects import NAMESPACE

Json = dict[str, Any]

_TOLD_TO_LEAVE: Final = text(
    "SELECT count(*) > 0 FROM triage.attempts WHERE run_id = :run AND sigterm_at IS NOT NULL"
)
_HALF_DONE: Final = text(
    "SELECT count(*) FILTER (WHERE c.tool = 'read_page' AND c.state = 'done') > 0"
    " FROM triage.tool_calls c JOIN triage.runs r USING (app_name, user_id, session_id) WHERE r.id = :run"
)
_ISSUE: Final = text("SELECT number FROM triage.issues WHERE run_id = :run")
_WENT_ON: Final = text(
    "SELECT count(*) > 0 FROM triage.attempts WHERE run_id = :run AND epoch > 1 AND first_write_at IS NOT NULL"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where the losses take place, and when they did."""

    cluster: LocalCluster
    engine: AsyncEngine
    runs: Followed
    pods: Followed
    story: Story
    lost_at: dict[str, datetime] = field(default_factory=dict)

    async def pod(self, run: str) -> Json:
        """Give the pod of a run, once it is on a node."""
        return await self.pods.until(lambda pods: _on_a_node(pods, run), f"{run} has a pod on a node")

    async def until(self, question: TextClause, run: str, what: str) -> None:
        """Wait until the database says yes to a question about a run."""
        uid = UUID(self.runs.objects[run]["metadata"]["uid"])
        await until_true(self.engine, question, f"{run} {what}", run=uid)

    async def issue_of(self, run: str) -> int | None:
        """Give the number of the issue that the tracker has of a run; None: it has none."""
        uid = UUID(self.runs.objects[run]["metadata"]["uid"])
        async with self.engine.connect() as connection:
            number: int | None = (await connection.execute(_ISSUE, {"run": uid})).scalar_one_or_none()
        return number

    def lose(self, run: str, how: str, at: datetime | None = None) -> None:
        """Note that a run is lost now, or was at another time."""
        self.lost_at[run] = at or datetime.now(UTC)
        self.story.done(run, how)


async def kill_after_write(stage: Stage, hold: Hold) -> None:
    """Kill an agent whose issue is filed and journaled, before it knows of it."""
    run = RunName.KILLED
    await hold.reached()
    await kill(stage, run, "its issue is filed, and its session knows nothing of it")
    await hold.cut_off()
    await stage.until(_WENT_ON, run, "goes on")


async def kill_half_done(stage: Stage, hold: Hold) -> None:
    """Kill an agent that makes two calls at once, of which one has ended."""
    run = RunName.HALF_DONE
    await hold.reached()
    await stage.until(_HALF_DONE, run, "has done one of its calls")
    await kill(stage, run, "one of its two calls is done, the other is not")
    await hold.cut_off()
    await stage.until(_WENT_ON, run, "goes on")


async def decide_in_doubt(
    stage: Stage, hold: Hold, hears: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Kill an agent inside a tool of which nobody knows whether it may run twice; then look, and decide.

    Args:
        stage: Where.
        hold: Where the run is held.
        hears: Waits until the person who decides hears of it; None: that is at once.
    """
    run = RunName.IN_DOUBT
    await hold.reached()
    await kill(stage, run, "inside a tool that nobody declared")
    await hold.cut_off()
    call = await stage.runs.until(lambda runs: _parked_call(runs[run]), f"{run} asks about its call")
    if hears is not None:
        await hears()
    decision = {"call": call["call"], "attempt": call["attempt"]}
    number = await stage.issue_of(run)
    if number is None:
        decision |= {"action": DecisionAction.RUN_AGAIN.value}
    else:
        decision |= {"action": DecisionAction.DONE.value, "result": {"number": number}}
    seen = "no issue of it" if number is None else f"issue {number}"
    stage.story.done(run, f"a person finds {seen} in the tracker, and decides: {decision['action']}")
    path = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/triageruns/{run}"
    body = {"spec": {"decisions": [decision]}}
    await stage.cluster.api.request("PATCH", path, body, content_type=MERGE)
    await stage.until(_WENT_ON, run, "goes on")


async def drain(stage: Stage, hold: Hold) -> None:
    """Drain the node of an agent in the middle of a tool, which ends once the agent knows."""
    run = RunName.DRAINED
    await hold.reached()
    node = (await stage.pod(run))["spec"]["nodeName"]
    async with asyncio.TaskGroup() as group:
        stage.lose(run, f"drain {node}: a tool of the run is at work there")
        group.create_task(stage.cluster.kubelet.drain(node))
        await stage.until(_TOLD_TO_LEAVE, run, "is told to leave")
        await hold.release()
    await stage.until(_WENT_ON, run, "goes on")


async def delete_while_operator_is_dead(stage: Stage, hold: Hold) -> None:
    """Delete a pod by force while nobody looks, in the middle of a tool."""
    run = RunName.OPERATOR_AWAY
    await hold.reached()
    cluster, name = stage.cluster, (await stage.pod(run))["metadata"]["name"]
    container = cluster.kubelet.container(NAMESPACE, name)
    await cluster.operator.kill()
    stage.story.done(run, "SIGKILL to the operator")
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"
    await cluster.api.request(
        "DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    )
    stage.lose(run, f"delete pod {name} by force, with no operator to see it")
    await container.reap()
    await hold.cut_off()
    await cluster.operator.start()
    stage.story.done(run, "the operator is back")
    await stage.until(_WENT_ON, run, "goes on")


async def run_out_of_memory(stage: Stage, run: str = RunName.OUT_OF_MEMORY) -> None:
    """Wait for an agent to be killed for want of memory, which it brings upon itself."""
    pod = await stage.pods.until(
        lambda pods: _out_of_memory(pods, run), f"{run} is killed for want of memory"
    )
    container = stage.cluster.kubelet.container(NAMESPACE, pod["metadata"]["name"])
    stage.lose(
        run, "killed by the node: the archive of issues does not fit into its memory", container.finished
    )


async def kill(stage: Stage, run: str, when: str) -> None:
    """Kill the agent of a run, and wait for its end."""
    name = (await stage.pod(run))["metadata"]["name"]
    stage.cluster.kubelet.kill(NAMESPACE, name)
    stage.lose(run, f"SIGKILL to {name}: {when}")
    await stage.cluster.kubelet.container(NAMESPACE, name).reap()


def _parked_call(run: Json) -> Json | None:
    calls: list[Json] = (run.get("status") or {}).get("waitingFor") or []
    return calls[0] if calls else None


def _on_a_node(pods: Mapping[str, Json], run: str) -> Json | None:
    placed = (pod for pod in pods.values() if pod["spec"].get("nodeName"))
    return next((pod for pod in placed if pod["metadata"]["annotations"][Annotation.RUN] == run), None)


def _out_of_memory(pods: Mapping[str, Json], run: str) -> Json | None:
    pod = _on_a_node(pods, run)
    statuses = pod["status"].get("containerStatuses") or [] if pod else []
    ends = (status["state"].get("terminated") or {} for status in statuses)
    return pod if any(end.get("reason") == "OOMKilled" for end in ends) else None
