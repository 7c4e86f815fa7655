"""A namespace of an end-to-end test: what a user does in it, and what befalls its pods."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import text

from support.kind.cluster import AGENT_IMAGE, Kind
from support.kind.gaps import Gap
from support.kind.processes import Process
from support.kind.programs import SYSTEM
from support.sight import Json
from support.workplace import Workplace
from triage_local.demo.asking import until_true
from triage_local.demo.holds import Hold, Place, holding
from triage_local.objects import DATABASE_SECRET, MODEL_SECRET

_WROTE: Final = text(
    "SELECT count(*) > 0 FROM triage.attempts WHERE run_id = :run AND epoch >= :epoch AND first_write_at IS NOT NULL"
)
_STORED: Final = text(
    "SELECT to_jsonb(e) FROM events e WHERE e.session_id = :session"
    " UNION ALL SELECT to_jsonb(s) FROM sessions s WHERE s.id = :session"
    " UNION ALL SELECT to_jsonb(c) FROM triage.tool_calls c WHERE c.session_id = :session"
    " UNION ALL SELECT to_jsonb(m) FROM triage.model_replies m WHERE m.session_id = :session"
    " UNION ALL SELECT to_jsonb(i) FROM triage.issues i WHERE i.run_id = :run"
    " ORDER BY 1"
)
_APPS: Final = Path(__file__).parents[2] / "system" / "apps"
_MOUNT: Final = "/apps"


class KindSite(Workplace):
    """A workplace on the kind cluster, with a database role of its own."""

    def __init__(self, kind: Kind, namespace: str) -> None:
        spec = {
            "image": AGENT_IMAGE,
            "model": {
                "name": "scripted",
                "baseUrl": f"http://scripted-model.{SYSTEM}:8080",
                "apiKeySecretRef": {"name": MODEL_SECRET, "key": "api-key"},
            },
            "database": {"urlSecretRef": {"name": DATABASE_SECRET, "key": "url"}},
            "resources": {
                "requests": {"cpu": "50m", "memory": "192Mi"},
                "limits": {"memory": "512Mi"},
            },
        }
        secrets = {MODEL_SECRET: {"api-key": "none-needed"}}
        super().__init__(kind.api, kind.engine, namespace, secrets=secrets, agent_spec=spec)
        self.kind = kind

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        added = await self.kind.programs.kubectl(
            *("exec", "--namespace", SYSTEM, "deployment/triage-operator", "--container", "operator", "--"),
            *(
                "triage-operator",
                "tenant",
                "add",
                self.namespace,
                "--rotate",
                "--print-secret",
                DATABASE_SECRET,
            ),
        )
        await self.kind.programs.kubectl("apply", "-f", "-", stdin=added)
        return self

    async def create_own_agent(self, name: str, app: str, env: Json | None = None, **spec: Any) -> None:
        """Create a TriageAgent with an app of ``system.apps``, whose modules come into the image from a ConfigMap."""
        data = {file.name: file.read_text() for file in _APPS.glob("*.py")}
        items = [{"key": file, "path": f"system/apps/{file}"} for file in data]
        await self.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-app"}, "data": data}
        )
        container = {
            "name": "agent",
            "env": [
                {"name": key, "value": value} for key, value in {"PYTHONPATH": _MOUNT, **(env or {})}.items()
            ],
            "volumeMounts": [{"name": "apps", "mountPath": _MOUNT}],
        }
        volume = {"name": "apps", "configMap": {"name": f"{name}-app", "items": items}}
        template = {"spec": {"containers": [container], "volumes": [volume]}}
        await self.create_agent(name, app=f"system.apps.{app}:app", model=None, podTemplate=template, **spec)

    async def create_run_on(self, node: str, run: str, **template: Any) -> Json:
        """Create a run whose first attempt is on this node, and the next one wherever there is room; give its pod.

        It gets an agent of its own, of the run's name. ``template`` are fields of its pods' spec.
        """
        pinned = {"nodeSelector": {"kubernetes.io/hostname": node}}
        await self.create_agent(run, podTemplate={"spec": {**template, **pinned}})
        await self.create_run(run, agentRef={"name": run})
        # A pod that had not started would be made anew when its agent changes.
        await self.started(run)
        pod = await self.pod(run)
        await self.change("TriageAgent", run, podTemplate={"spec": {"nodeSelector": None}})
        return pod

    @contextlib.asynccontextmanager
    async def held(self, *runs: str) -> AsyncIterator[dict[str, Hold]]:
        """Create runs, and hold each in the middle of its tool until it is let go or the block ends."""
        async with contextlib.AsyncExitStack() as stack:
            holds = {
                run: await stack.enter_async_context(holding(self.engine, run, Place.IN_TOOL)) for run in runs
            }
            for run in runs:
                await self.create_run(run)
            for hold in holds.values():
                await hold.reached()
            yield holds

    async def kill_after_write(self, run: str) -> datetime:
        """Create a run, and kill its agent where its issue is filed and its session does not know; give when."""
        async with holding(self.engine, run, Place.AFTER_WRITE) as hold:
            await self.create_run(run)
            await hold.reached()
            at = await self.kill(run)
            await hold.cut_off()
        return at

    async def lose_after_write(self, run: str, lose: Callable[[str], Awaitable[None]]) -> datetime:
        """Create a run, make its pod leave at that place, and let its tool end once its agent knows; give when."""
        async with holding(self.engine, run, Place.AFTER_WRITE) as hold:
            await self.create_run(run)
            await hold.reached()
            at = datetime.now(UTC)
            await lose(run)
            await self.asked_to_leave(run)
            await hold.release()
        return at

    async def delete_pod(self, run: str) -> None:
        """Delete the pod of a run's newest attempt."""
        await self.delete("Pod", (await self.pod(run))["metadata"]["name"])

    async def process(self, run: str, epoch: int = 1) -> Process:
        """Find the process of an attempt, once it has started."""
        await self.started(run, epoch)
        return await Process.find(self.kind.programs, await self.pod(run, epoch))

    async def stored(self, run: str) -> list[Json]:
        """Give all rows that a run's agent writes: its session, events, journal and issues."""
        async with self.engine.connect() as connection:
            params = {"session": f"run-{self.uid(run)}", "run": self.uid(run)}
            return list((await connection.execute(_STORED, params)).scalars())

    async def kill(self, run: str, epoch: int = 1, signal: str = "KILL") -> datetime:
        """Send a signal to the agent's process, and give when."""
        await self.started(run, epoch)
        pod = await self.pod(run, epoch)
        (container,) = (
            one["containerID"].removeprefix("containerd://")
            for one in pod["status"]["containerStatuses"]
            if one["name"] == "agent"
        )
        at = datetime.now(UTC)
        await self.kind.programs.kill(pod["spec"]["nodeName"], container, signal)
        return at

    async def went_on(self, case: str, run: str, lost_at: datetime, epoch: int = 2) -> None:
        """Wait for what this attempt or a later one stores first, and note how long it took since the loss."""
        await until_true(
            self.engine, _WROTE, f"attempt {epoch} of {run} goes on", run=self.uid(run), epoch=epoch
        )
        attempts = await self.attempts(run)
        before = next(one for one in attempts if one.epoch == epoch - 1)
        attempt = next(one for one in attempts if one.epoch >= epoch and one.first_write_at is not None)
        assert attempt.first_write_at is not None
        seconds = (attempt.first_write_at - lost_at).total_seconds()
        self.kind.gaps.append(Gap(case=case, cause=str(before.cause), seconds=seconds))
