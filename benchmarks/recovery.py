"""From the loss of an attempt to the next one's first durable write, on the local cluster, and where the time goes.

Each run is lost while it waits for its third model reply; the next attempt is a cold process.
"""

import asyncio
import json
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause, text
from sqlalchemy.ext.asyncio import AsyncEngine

from benchmarks.splits import Recoveries, split
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
_TIMES: Final = text(
    "SELECT coalesce(lost.sigterm_at, lost.handoff_requested_at) AS told_at, lost.released_at, lost.ended_at,"
    " next.created_at, next.pod, next.claimed_at, next.first_write_at"
    " FROM triage.attempts lost JOIN triage.attempts next USING (run_id)"
    " WHERE run_id = :run AND lost.epoch = 1 AND next.epoch = 2"
)
_SIGTERM: Final = text("SELECT sigterm_at FROM triage.attempts WHERE run_id = :run AND epoch = 1")
_ASKED: Final = text("SELECT handoff_requested_at FROM triage.attempts WHERE run_id = :run AND epoch = 1")
_SUCCEEDED: Final = text("SELECT ended_at FROM triage.runs WHERE id = :run AND state = 'succeeded'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way to lose a pod. ``told`` asks when its process was told to leave; None: it is not."""

    name: str
    lose: Callable[[LocalCluster, str], Awaitable[None]]
    told: TextClause | None = None


async def measure_recoveries(*, rounds: int) -> list[Recoveries]:
    """Lose ``rounds`` runs in each way, one after the other."""
    ways = (
        Way(name="SIGKILL of the process", lose=_kill),
        Way(name="kubectl delete pod", lose=_delete, told=_SIGTERM),
        Way(name="kubectl cordon of its node", lose=_cordon, told=_ASKED),
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "operator.log"
        async with LocalCluster(
            operator_log=log, operator_settings={"TRIAGE_OPERATOR_LOG_FORMAT": "json"}
        ) as cluster:
            engine = open_engine(DatabaseUrl.parse(cluster.database_url), application="bench")
            try:
                return [
                    split(
                        way.name,
                        [await _recover(cluster, engine, log, f"way-{kind}-{n}", way) for n in range(rounds)],
                    )
                    for kind, way in enumerate(ways)
                ]
            finally:
                await engine.dispose()


async def _recover(
    cluster: LocalCluster, engine: AsyncEngine, log: Path, name: str, way: Way
) -> Mapping[str, datetime]:
    """Lose one run; give when each of ``STAMPS`` was. ``log`` is the operator's."""
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
    await way.lose(cluster, pod)
    if way.told is not None:
        await _until(engine, way.told, run)
        # It is in a model call, and hands off once that is over.
        cluster.model.faults.release()
    await _until(engine, _FIRST_WRITE, run)
    cluster.model.faults.release()
    await _until(engine, _SUCCEEDED, run)
    async with engine.connect() as connection:
        times = (await connection.execute(_TIMES, {"run": run})).one()
    for node in ("node-1", "node-2"):
        await cluster.kubelet.cordon(node, unschedulable=False)
    container = cluster.kubelet.container(NAMESPACE, times.pod)
    said = {line["message"]: _time(line["asctime"]) for line in _records(container.log)}
    stamps = {
        "lost": lost_at,
        "told": times.told_at,
        "released": times.released_at,
        "decided": next(
            _time(line["time"])
            for line in _records(log)
            if (line.get("run"), line.get("action")) == (name, "EndAttempt")
        ),
        "ended": times.ended_at,
        "opened": times.created_at,
        "container": container.started,
        "started": said["started"],
        "loaded": said["loaded"],
        "claimed": times.claimed_at,
        "wrote": times.first_write_at,
    }
    return {name: stamp for name, stamp in stamps.items() if stamp is not None}


def _records(log: Path) -> Iterator[Mapping[str, Any]]:
    """Read the records of a log, without what libraries print in between."""
    return (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))


def _time(written: str) -> datetime:
    """Read the time of a log record, which is this machine's local time."""
    return datetime.strptime(written, "%Y-%m-%d %H:%M:%S,%f").astimezone(UTC)


async def _kill(cluster: LocalCluster, pod: str) -> None:
    cluster.kubelet.kill(NAMESPACE, pod, signal.SIGKILL)


async def _delete(cluster: LocalCluster, pod: str) -> None:
    await cluster.api.request("DELETE", _path(pod))


async def _cordon(cluster: LocalCluster, pod: str) -> None:
    await cluster.kubelet.cordon((await cluster.api.request("GET", _path(pod)))["spec"]["nodeName"])


def _path(pod: str) -> str:
    return f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}"


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
