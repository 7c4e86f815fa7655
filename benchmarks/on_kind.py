"""From a loss to the next attempt's first durable write on the cluster of ``make cluster``, by cause, beside a Job.

Ours and the Job's agent are lost at the same place, right after the write of ``file_issue``. The release is installed
where there is none, and stays.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.figures import Measured
from benchmarks.splits import Recoveries, split
from support.kind.bare_job import BareJob, bare_job
from support.kind.cluster import Kind, a_kind
from support.kind.site import KindSite
from support.sight import Json

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
        ways: dict[str, Callable[[str], Awaitable[datetime]]] = {
            _KILL: site.kill_after_write,
            _DELETE: partial(site.lose_after_write, lose=site.delete_pod),
            _EVICT: partial(site.lose_after_write, lose=site.evict),
            _OOM: partial(_run_out_of_memory, site),
        }
        for number in range(rounds):
            for way, (case, lose) in enumerate(ways.items()):
                run = f"run-{way}-{number}"
                ours[case].append(await _stamps(site, run, await lose(run)))
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
    lost, *later = await site.attempts(run)
    # One that was lost before it stored anything did not make the loss good.
    following = next(one for one in later if one.first_write_at is not None)
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


async def _run_out_of_memory(site: KindSite, run: str) -> datetime:
    """Let a run grow until its node kills it; the kubelet tells when, in whole seconds."""
    await site.create_run(run, agentRef={"name": _HUNGRY})
    pod = await site.started(run)

    def killed_at(pods: Mapping[str, Json]) -> str | None:
        (status,) = pods[pod]["status"]["containerStatuses"]
        return str(status["state"]["terminated"]["finishedAt"]) if "terminated" in status["state"] else None

    lost_at = await site.pods.until(killed_at, f"pod {pod} is killed")
    return datetime.fromisoformat(lost_at)


async def _lose_job(
    site: KindSite, name: str, case: str, lose: Callable[[BareJob], Awaitable[datetime]]
) -> None:
    async with bare_job(site, name) as job:
        await job.filed()
        await job.went_on(case, await lose(job))
