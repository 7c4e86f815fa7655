"""The control: the same agent without an operator, under a Job that starts it again."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from google.adk.sessions.database_session_service import DatabaseSessionService
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from support.kind.cluster import AGENT_IMAGE
from support.kind.gaps import Gap
from support.kind.programs import SYSTEM
from support.kind.site import KindSite
from support.sight import Json
from triage_contract.names import AttemptEnv, DocsEnv
from triage_local.demo.asking import until_true

_AGENT: Final = Path(__file__).with_name("bare_agent.py")
_STAMP: Final = text("ALTER TABLE events ADD COLUMN stored_at timestamptz NOT NULL DEFAULT clock_timestamp()")
_FILED: Final = text("SELECT count(*) >= :number FROM triage.issues WHERE run_id = :run")
_ANSWERED: Final = text(
    "SELECT count(*) > 0 FROM events WHERE session_id = :session AND event_data ->> 'author' <> 'user'"
    " AND jsonb_path_exists(event_data::jsonb, '$.content.parts[*].text')"
)
_STORED: Final = text("SELECT min(stored_at) FROM events WHERE session_id = :session AND stored_at > :since")
_WROTE: Final = text("SELECT min(created_at) FROM triage.issues WHERE run_id = :run AND created_at > :since")


@dataclass(frozen=True, slots=True, kw_only=True)
class BareJob:
    """One Job, with a session of its own in a database that only ADK writes to."""

    site: KindSite
    name: str
    run: UUID
    sessions: AsyncEngine

    async def filed(self, number: int = 1) -> None:
        """Wait until it has filed as many issues."""
        await until_true(
            self.site.engine, _FILED, f"job {self.name} files {number}", number=number, run=self.run
        )

    async def kill(self) -> datetime:
        """Kill the process of its pod, and give when."""
        pod = await self._pod()
        (status,) = pod["status"]["containerStatuses"]
        at = datetime.now(UTC)
        identity = status["containerID"].removeprefix("containerd://")
        await self.site.kind.programs.kill(pod["spec"]["nodeName"], identity)
        return at

    async def delete(self) -> datetime:
        """Delete its pod, and give when."""
        name = (await self._pod())["metadata"]["name"]
        at = datetime.now(UTC)
        await self.site.delete("Pod", name)
        return at

    async def evict(self) -> datetime:
        """Evict its pod, as a drain does, and give when."""
        name = (await self._pod())["metadata"]["name"]
        at = datetime.now(UTC)
        await self.site.evict_pod(name)
        return at

    async def went_on(self, case: str, lost_at: datetime) -> None:
        """Wait for its answer, and note the seconds from the loss to what it stored first."""
        await until_true(self.sessions, _ANSWERED, f"job {self.name} answers", session=self.name)
        times = [
            await _time(self.sessions, _STORED, session=self.name, since=lost_at),
            await _time(self.site.engine, _WROTE, run=self.run, since=lost_at),
        ]
        first = min(time for time in times if time is not None)
        seconds = (first - lost_at).total_seconds()
        self.site.kind.gaps.append(Gap(case=f"{case}, under a Job", cause="", seconds=seconds))

    async def _pod(self) -> Json:
        def find(pods: Mapping[str, Json]) -> Json | None:
            for pod in pods.values():
                statuses = pod["status"].get("containerStatuses") or []
                mine = (pod["metadata"].get("labels") or {}).get("batch.kubernetes.io/job-name") == self.name
                if mine and any("running" in one["state"] for one in statuses):
                    return pod
            return None

        return await self.site.pods.until(find, f"job {self.name} has a pod that runs")


@asynccontextmanager
async def bare_job(site: KindSite, name: str) -> AsyncIterator[BareJob]:
    """Start a Job whose first process stands still right after its issue was filed; in the end drop its database."""
    url = make_url(site.kind.database_url).set(drivername="postgresql+asyncpg")
    database = f"bare_{uuid4().hex[:8]}"
    outside = url.set(database=database)
    await _administer(site.engine, f"CREATE DATABASE {database}")
    service = DatabaseSessionService(outside.render_as_string(hide_password=False))
    sessions = create_async_engine(outside)
    try:
        await service.prepare_tables()
        async with sessions.begin() as connection:
            await connection.execute(_STAMP)
        job = BareJob(site=site, name=name, run=uuid4(), sessions=sessions)
        inside = url.set(host=f"triage-operator-postgres.{SYSTEM}", port=5432)
        secret = {
            "sessions": inside.set(database=database).render_as_string(hide_password=False),
            "issues": inside.set(drivername="postgresql").render_as_string(hide_password=False),
        }
        await site.create_secret(name, secret)
        await site.kind.programs.apply(*_manifests(site, job), namespace=site.namespace)
        yield job
        await site.kind.programs.kubectl("delete", "job", name, "--namespace", site.namespace)
    finally:
        await service.close()
        await sessions.dispose()
        await _administer(site.engine, f"DROP DATABASE {database} WITH (FORCE)")


async def _administer(engine: AsyncEngine, statement: str) -> None:
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text(statement))


async def _time(engine: AsyncEngine, question: Any, **params: Any) -> datetime | None:
    async with engine.connect() as connection:
        found: datetime | None = (await connection.execute(question, params)).scalar_one()
        return found


def _manifests(site: KindSite, job: BareJob) -> tuple[Json, Json]:
    model = site.agent_spec["model"]
    plain = {
        "SESSION": job.name,
        "REPORT": site.report(job.name),
        DocsEnv.MODEL.value: model["name"],
        DocsEnv.MODEL_BASE_URL.value: model["baseUrl"],
        DocsEnv.MODEL_API_KEY.value: "none-needed",
        # Under which its issues are counted; no attempt stands behind it.
        AttemptEnv.RUN_ID.value: str(job.run),
    }
    secret = {"SESSIONS": "sessions", AttemptEnv.DATABASE_URL.value: "issues"}
    env = [{"name": name, "value": value} for name, value in plain.items()]
    env += [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": job.name, "key": key}}}
        for name, key in secret.items()
    ]
    container = {
        "name": "agent",
        "image": AGENT_IMAGE,
        "command": ["python", "/bare/agent.py"],
        "env": env,
        "resources": site.agent_spec["resources"],
        "volumeMounts": [{"name": "bare", "mountPath": "/bare"}],
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "bare", "configMap": {"name": job.name}}],
    }
    metadata = {"name": job.name}
    data = {"agent.py": _AGENT.read_text()}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data},
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {"backoffLimit": 6, "template": {"spec": pod}},
        },
    )
