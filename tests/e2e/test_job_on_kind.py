"""The control: the same agent on ADK alone under a Job, lost in the same way at the same place as a run of ours."""

from datetime import UTC, datetime

import pytest

from support.kind.bare_job import bare_job
from support.kind.site import KindSite
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_killed_after_its_write_a_job_files_twice_and_a_run_once(site: KindSite) -> None:
    case = "SIGKILL right after the write"
    async with bare_job(site, "killed-job") as job:
        await job.filed()
        await job.went_on(case, await job.kill())
        assert len(await site.issues_of(job.run)) == 2
    async with holding(site.engine, "killed", Place.AFTER_WRITE) as hold:
        await site.create_run("killed")
        await hold.reached()
        lost_at = await site.kill("killed")
        await hold.cut_off()
        await site.went_on(case, "killed", lost_at)
    await site.succeeded("killed", ["sigkill"])


async def test_deleted_after_its_write_a_job_files_twice_and_a_run_once(site: KindSite) -> None:
    case = "kubectl delete pod right after the write"
    async with bare_job(site, "deleted-job") as job:
        await job.filed()
        await job.went_on(case, await job.delete())
        assert len(await site.issues_of(job.run)) == 2
    async with holding(site.engine, "deleted", Place.AFTER_WRITE) as hold:
        await site.create_run("deleted")
        await hold.reached()
        pod = (await site.pod("deleted"))["metadata"]["name"]
        lost_at = datetime.now(UTC)
        await site.delete("Pod", pod)
        await site.asked_to_leave("deleted")
        await hold.release()
        await site.went_on(case, "deleted", lost_at)
    await site.succeeded("deleted", ["deleted"])
