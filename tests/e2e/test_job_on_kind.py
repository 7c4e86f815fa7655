"""The control: the same agent on ADK alone under a Job, lost in the same way at the same place as a run of ours."""

import pytest

from support.kind.bare_job import bare_job
from support.kind.site import KindSite

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]


async def test_killed_after_its_write_a_job_files_twice_and_a_run_once(site: KindSite) -> None:
    case = "SIGKILL right after the write"
    async with bare_job(site, "killed-job") as job:
        await job.filed()
        await job.went_on(case, await job.kill())
        assert len(await site.issues_of(job.run)) == 2
    await site.went_on(case, "killed", await site.kill_after_write("killed"))
    await site.succeeded("killed", ["sigkill"])


async def test_deleted_after_its_write_a_job_files_twice_and_a_run_once(site: KindSite) -> None:
    case = "kubectl delete pod right after the write"
    async with bare_job(site, "deleted-job") as job:
        await job.filed()
        await job.went_on(case, await job.delete())
        assert len(await site.issues_of(job.run)) == 2
    await site.went_on(case, "deleted", await site.lose_after_write("deleted", site.delete_pod))
    await site.succeeded("deleted", ["deleted"])
