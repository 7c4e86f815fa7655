"""From a loss to the next attempt's first durable write on the cluster of ``make cluster``, by cause, beside a Job.

Ours and the Job's agent are lost at the same place, right after the write of ``file_issue``. The release is installed
where there is none, and stays.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.figures import Measured
from support.kind.bare_job import BareJob, bare_job
from support.kind.cluster import Kind, a_kind
from support.kind.site import KindSite
from support.sight import Json
from triage_local.demo.holds import Place, holding

_KUBECONFIG: Final = Path(__file__).parents[1] / "build" / "cluster" / "kubeconfig"
_NAMESPACE: Final = "bench-kind"
_DELETE: Final = "kubectl delete pod"
_EVICT: Final = "eviction, as by a drain"
_KILL: Final = "SIGKILL of the process"
_OOM: Final = "OOM kill"
_HUNGRY: Final = "hungry"


async def measure_on_kind(*, rounds: int) -> list[Measured]:
    """Lose ``rounds`` runs and Jobs in each way, one after the other."""
    async with a_kind(_KUBECONFIG, [], keep=True) as kind, KindSite(kind, _NAMESPACE) as site:
        await site.create_own_agent(
            _HUNGRY, _HUNGRY, resources={"limits": {"memory": "256Mi"}}, resume={"memory": {"factor": 2}}
        )
        for number in range(rounds):
            await _leave(site, f"deleted-{number}", _DELETE, _delete)
            await _leave(site, f"evicted-{number}", _EVICT, KindSite.evict)
            await _kill(site, f"killed-{number}")
            await _run_out_of_memory(site, f"hungry-{number}")
            await _lose_job(site, f"job-deleted-{number}", _DELETE, BareJob.delete)
            await _lose_job(site, f"job-evicted-{number}", _EVICT, BareJob.evict)
            await _lose_job(site, f"job-killed-{number}", _KILL, BareJob.kill)
        return _measured(kind)


def _measured(kind: Kind) -> list[Measured]:
    seconds = defaultdict(list)
    for gap in kind.gaps:
        seconds[gap.case].append(gap.seconds)
    return [Measured(name=case, seconds=each) for case, each in seconds.items()]


async def _leave(
    site: KindSite, run: str, case: str, lose: Callable[[KindSite, str], Awaitable[None]]
) -> None:
    """Ask the pod of a run to leave while it is held, and let its tool end once it knows."""
    async with holding(site.engine, run, Place.AFTER_WRITE) as hold:
        await site.create_run(run)
        await hold.reached()
        lost_at = datetime.now(UTC)
        await lose(site, run)
        await site.asked_to_leave(run)
        await hold.release()
        await site.went_on(case, run, lost_at)
    await site.ended(run)


async def _kill(site: KindSite, run: str) -> None:
    async with holding(site.engine, run, Place.AFTER_WRITE) as hold:
        await site.create_run(run)
        await hold.reached()
        lost_at = await site.kill(run)
        await hold.cut_off()
        await site.went_on(_KILL, run, lost_at)
    await site.succeeded(run, ["sigkill"])


async def _run_out_of_memory(site: KindSite, run: str) -> None:
    """Let a run grow until its node kills it; the kubelet tells when, in whole seconds."""
    await site.create_run(run, agentRef={"name": _HUNGRY})
    pod = await site.started(run)

    def killed_at(pods: Mapping[str, Json]) -> str | None:
        (status,) = pods[pod]["status"]["containerStatuses"]
        return str(status["state"]["terminated"]["finishedAt"]) if "terminated" in status["state"] else None

    lost_at = await site.pods.until(killed_at, f"pod {pod} is killed")
    await site.went_on(_OOM, run, datetime.fromisoformat(lost_at))
    await site.ended(run)


async def _lose_job(
    site: KindSite, name: str, case: str, lose: Callable[[BareJob], Awaitable[datetime]]
) -> None:
    async with bare_job(site, name) as job:
        await job.filed()
        await job.went_on(case, await lose(job))


async def _delete(site: KindSite, run: str) -> None:
    await site.delete("Pod", (await site.pod(run))["metadata"]["name"])
