"""From the kill of an agent's process to the next attempt's first durable write, on the local cluster.

Each run is lost while it waits for its third model reply; the next attempt is a cold process.
"""

import asyncio
import signal
import time
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from benchmarks.figures import Measured
from triage_contract.database.engine import open_engine
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import API_VERSION
from triage_local.cluster import LocalCluster
from triage_local.model.faults import Fault
from triage_local.objects import NAMESPACE

PATIENCE_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.02
_NOW: Final = text("SELECT clock_timestamp()")
_FIRST_WRITE: Final = text("SELECT first_write_at FROM triage.attempts WHERE run_id = :run AND epoch = 2")
_ATTEMPT: Final = text(
    "SELECT pod FROM triage.attempts WHERE run_id = :run AND epoch = 1 AND calls_done >= 2"
)
_SUCCEEDED: Final = text("SELECT ended_at FROM triage.runs WHERE id = :run AND state = 'succeeded'")


async def measure_recoveries(*, rounds: int) -> list[Measured]:
    """Kill ``rounds`` runs by SIGKILL and delete as many pods, one after the other."""
    async with LocalCluster() as cluster:
        engine = open_engine(DatabaseUrl.parse(cluster.database_url), application="bench")
        try:
            killed = [await _recover(cluster, engine, f"killed-{n}", _kill) for n in range(rounds)]
            deleted = [await _recover(cluster, engine, f"deleted-{n}", _delete) for n in range(rounds)]
        finally:
            await engine.dispose()
    return [
        Measured(name="SIGKILL of the process", seconds=killed),
        Measured(name="kubectl delete pod", seconds=deleted),
    ]


async def _recover(cluster: LocalCluster, engine: AsyncEngine, name: str, lose: Any) -> float:
    cluster.model.faults.add(Fault(hang=True, report=name, step="file_issue"))
    made = await cluster.create(
        {
            "apiVersion": API_VERSION,
            "kind": "TriageRun",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"report": f"The tokens page says that deploy tokens never expire ({name})."},
        }
    )
    run = UUID(made["metadata"]["uid"])
    pod = await _until(engine, _ATTEMPT, run)
    await _asked(cluster, name)
    lost_at = await _now(engine)
    await lose(cluster, pod)
    wrote_at: datetime = await _until(engine, _FIRST_WRITE, run)
    cluster.model.faults.release()
    await _until(engine, _SUCCEEDED, run)
    return (wrote_at - lost_at).total_seconds()


async def _kill(cluster: LocalCluster, pod: str) -> None:
    cluster.kubelet.kill(NAMESPACE, pod, signal.SIGKILL)


async def _delete(cluster: LocalCluster, pod: str) -> None:
    await cluster.api.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}")
    # The process is in a model call, and hands off once that is over.
    cluster.model.faults.release()


async def _asked(cluster: LocalCluster, name: str) -> None:
    """Wait until the model was asked what it does not answer."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        # The model tells nobody when it is asked.
        while not any(request.step == "file_issue" for request in cluster.model.asked(name)):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)


async def _now(engine: AsyncEngine) -> datetime:
    async with engine.connect() as connection:
        now: datetime = (await connection.execute(_NOW)).scalar_one()
        return now


async def _until(engine: AsyncEngine, statement: Any, run: UUID) -> Any:
    """Ask until the answer is neither missing nor null."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        async with engine.connect() as connection:
            found = (await connection.execute(statement, {"run": run})).scalar_one_or_none()
        if found is not None:
            return found
        await asyncio.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"waited {PATIENCE_SECONDS:.0f} s in vain for: {statement}")
