"""The API server restarted under runs at work and runs that are lost meanwhile."""

from datetime import UTC, datetime

import pytest

from support.kind.cluster import Kind
from support.kind.site import KindSite
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(420)]


async def test_runs_outlive_a_restart_of_the_api_server(kind: Kind, site: KindSite) -> None:
    async with (
        holding(site.engine, "at-work", Place.IN_TOOL) as working,
        holding(site.engine, "lost", Place.AFTER_WRITE) as losing,
    ):
        for name in ("at-work", "lost"):
            await site.create_run(name)
        for hold in (working, losing):
            await hold.reached()
        process = await site.process("lost")
        await kind.programs.docker("exec", kind.control_plane, "pkill", "-KILL", "kube-apiserver")
        lost_at = datetime.now(UTC)
        await process.signal("KILL")
        await losing.cut_off()
        await working.release()
        await site.went_on("SIGKILL without an API server", "lost", lost_at)
    await site.succeeded("lost", ["sigkill"])
    await site.succeeded("at-work")
