"""From a loss to the next attempt's first durable write on the cluster of ``make cluster``, by cause, beside a Job.

Ours and the Job's agent are lost at the same place, right after the write of ``file_issue``. The release is installed
where there is none, and stays.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks.figures import Measured
from benchmarks.splits import Recoveries, split
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What losses of each kind cost ours, and the same agent under a Job."""

    ours: Sequence[Recoveries]
    jobs: Sequence[Measured]


async def measure_on_kind(*, rounds: int) -> Losses:
    """Lose ``rounds`` runs and Jobs in each way, one after the other."""
    ours: dict[str, list[Mapping[str, datetime]]] = defaultdict(list)
    async with a_kind(_KUBECONFIG, [], keep=True) as kind, KindSite(kind, _NAMESPACE) as site:
        await site.create_own_agent(
            _HUNGRY, _HUNGRY, resources={"limits": {"memory": "256Mi"}}, resume={"memory": {"factor": 2}}
        )
        for number in range(rounds):
            ours[_KILL].append(await _kill(site, f"killed-{number}"))
            ours[_DELETE].append(await _leave(site, f"deleted-{number}", _delete))
            ours[_EVICT].append(await _leave(site, f"evicted-{number}", KindSite.evict))
            ours[_OOM].append(await _run_out_of_memory(site, f"hungry-{number}"))
            await _lose_job(site, f"job-killed-{number}", _KILL, BareJob.kill)
            await _lose_job(site, f"job-deleted-{number}", _DELETE, BareJob.delete)
            await _lose_job(site, f"job-evicted-{number}", _EVICT, BareJob.evict)
        return Losses(ours=[split(case, stamped) for case, stamped in ours.items()], jobs=_measured(kind))


def _measured(kind: Kind) -> list[Measured]:
    seconds = defaultdict(list)
    for gap in kind.gaps:
        seconds[gap.case].append(gap.seconds)
    return [Measured(name=case, seconds=each) for case, each in seconds.items()]


async def _stamps(site: KindSite, run: str, lost_at: datetime) -> Mapping[str, datetime]:
    """Wait for the run's end; give when each of ``STAMPS`` was that the database tells of."""
    await site.ended(run)
    lost, following, *_ = await site.attempts(run)
    stamps = {
        "lost": lost_at,
        "told": lost.sigterm_at,
        "released": lost.released_at,
        "ended": lost.ended_at,
        "opened": following.created_at,
        "claimed": following.claimed_at,
        "wrote": following.first_write_at,
    }
    return {name: stamp for name, stamp in stamps.items() if stamp is not None}


async def _leave(
    site: KindSite, run: str, lose: Callable[[KindSite, str], Awaitable[None]]
) -> Mapping[str, datetime]:
    """Ask the pod of a run to leave while it is held, and let its tool end once it knows."""
    async with holding(site.engine, run, Place.AFTER_WRITE) as hold:
        await site.create_run(run)
        await hold.reached()
        lost_at = datetime.now(UTC)
        await lose(site, run)
        await site.asked_to_leave(run)
        await hold.release()
        return await _stamps(site, run, lost_at)


async def _kill(site: KindSite, run: str) -> Mapping[str, datetime]:
    async with holding(site.engine, run, Place.AFTER_WRITE) as hold:
        await site.create_run(run)
        await hold.reached()
        lost_at = await site.kill(run)
        await hold.cut_off()
        return await _stamps(site, run, lost_at)


async def _run_out_of_memory(site: KindSite, run: str) -> Mapping[str, datetime]:
    """Let a run grow until its node kills it; the kubelet tells when, in whole seconds."""
    await site.create_run(run, agentRef={"name": _HUNGRY})
    pod = await site.started(run)

    def killed_at(pods: Mapping[str, Json]) -> str | None:
        (status,) = pods[pod]["status"]["containerStatuses"]
        return str(status["state"]["terminated"]["finishedAt"]) if "terminated" in status["state"] else None

    lost_at = await site.pods.until(killed_at, f"pod {pod} is killed")
    return await _stamps(site, run, datetime.fromisoformat(lost_at))


async def _lose_job(
    site: KindSite, name: str, case: str, lose: Callable[[BareJob], Awaitable[datetime]]
) -> None:
    async with bare_job(site, name) as job:
        await job.filed()
        await job.went_on(case, await lose(job))


async def _delete(site: KindSite, run: str) -> None:
    await site.delete("Pod", (await site.pod(run))["metadata"]["name"])
