"""A namespace in which a test does what users do, on whatever cluster it is."""

import asyncio
import contextlib
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from support.sight import Json, Sight, version
from triage_contract.names import API_VERSION
from triage_local.demo.asking import until_true
from triage_local.kubelet.cluster import MERGE, Cluster
from triage_local.kubelet.exceptions import ClusterError
from triage_local.objects import build_namespace, build_secret

_CLOSED: Final = text(
    "SELECT count(*) = 0 FROM triage.runs r LEFT JOIN triage.attempts a ON a.run_id = r.id AND a.ended_at IS NULL"
    " LEFT JOIN triage.fences f USING (app_name, user_id, session_id)"
    " WHERE r.namespace = :namespace AND (r.state = 'active' OR a.serial IS NOT NULL OR f.token IS NOT NULL)"
)


class Workplace(Sight):
    """A namespace, until the block ends; then nothing is left of it.

    ``secrets`` are made in it by their names, and a TriageAgent ``default`` with ``agent_spec``.
    """

    def __init__(
        self,
        api: Cluster,
        engine: AsyncEngine,
        namespace: str,
        *,
        secrets: Mapping[str, Mapping[str, str]],
        agent_spec: Json,
    ) -> None:
        super().__init__(api, engine, namespace)
        self.agent_spec = agent_spec
        self._secrets = secrets
        self._following: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self.api.request("POST", "/api/v1/namespaces", build_namespace(self.namespace))
        for name, data in self._secrets.items():
            await self.create_secret(name, data)
        await self.create_agent()
        self._following = [
            asyncio.create_task(each.run()) for each in (self.runs, self.pods, self.agents, self.said)
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        finally:
            for task in self._following:
                task.cancel()
            await asyncio.gather(*self._following, return_exceptions=True)

    async def close(self) -> None:
        """Delete the namespace, and see that nothing hangs and nothing of it goes on."""
        with contextlib.suppress(ClusterError):
            await self.api.request("DELETE", f"/api/v1/namespaces/{self.namespace}")
        await self.pods.until(lambda pods: not pods or None, f"the pods of {self.namespace} are gone")
        await self.runs.until(lambda runs: not runs or None, f"the runs of {self.namespace} are gone")
        await until_true(
            self.engine,
            _CLOSED,
            f"all of {self.namespace} is closed in the database",
            namespace=self.namespace,
        )

    async def create(self, manifest: Json) -> Json:
        """Create an object. ClusterError: it was refused."""
        manifest = {**manifest, "metadata": {**manifest["metadata"], "namespace": self.namespace}}
        return await self.api.request("POST", self.path(manifest["kind"]), manifest)

    async def create_agent(self, name: str = "default", **spec: Any) -> Json:
        """Create a TriageAgent: the usual one, with changed fields; None takes one away."""
        chosen = {**self.agent_spec, **spec}
        chosen = {field: value for field, value in chosen.items() if value is not None}
        return await self.create(_custom("TriageAgent", name, chosen))

    async def create_run(self, name: str, **spec: Any) -> Json:
        """Create a TriageRun, by default with a report of its own."""
        return await self.create(_custom("TriageRun", name, {"report": self.report(name), **spec}))

    def report(self, name: str) -> str:
        """Give a report that no other run has: faults of the model can be meant for it alone."""
        return f"[{self.namespace}/{name}] The tokens page says that deploy tokens never expire. They do."

    async def create_secret(self, name: str, data: Mapping[str, str]) -> Json:
        """Create a Secret from plain texts by their keys."""
        return await self.create(build_secret(name, data))

    async def patch_secret(self, name: str, data: Mapping[str, str]) -> None:
        """Change keys of a Secret."""
        body = {"data": build_secret(name, data)["data"]}
        await self.api.request("PATCH", self.path("Secret", name), body, content_type=MERGE)

    async def change(self, kind: str, name: str, **spec: Any) -> None:
        """Change fields of an object's spec."""
        await self.api.request("PATCH", self.path(kind, name), {"spec": spec}, content_type=MERGE)

    async def delete(self, kind: str, name: str, *, grace_seconds: int | None = None) -> None:
        """Delete an object."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace_seconds}
        body = None if grace_seconds is None else options
        await self.api.request("DELETE", self.path(kind, name), body)

    async def evict(self, run: str, epoch: int = 1) -> None:
        """Evict the pod of an attempt, as a drain does."""
        await self.evict_pod((await self.pod(run, epoch))["metadata"]["name"])

    async def evict_pod(self, name: str) -> None:
        """Evict a pod by its name."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await self.api.request("POST", f"{self.path('Pod', name)}/eviction", body)

    async def overwrite_status(self, run: str, **fields: Any) -> None:
        """Write into a run's status, as somebody with too many rights may, until the operator has set it right."""
        path = f"{self.path('TriageRun', run)}/status"
        written = await self.api.request("PATCH", path, {"status": fields}, content_type=MERGE)

        def is_right(seen: Json) -> bool | None:
            stands = any(seen["status"].get(name) == value for name, value in fields.items())
            return True if version(seen) > version(written) and not stands else None

        await self.until(run, is_right, f"has lost {fields}")


def _custom(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
