"""The release upgraded, and taken away and installed again, while runs are at work and lost."""

import asyncio
from pathlib import Path

import pytest

from support.kind import operators
from support.kind.cluster import Kind
from support.kind.releases import FIELD, chart_that_keeps_its_database, later_chart, tagged_anew
from support.kind.site import KindSite
from triage_contract.states import Cause

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]


async def test_an_upgrade_of_operator_and_definitions_loses_nothing(
    kind: Kind, site: KindSite, tmp_path: Path
) -> None:
    async with (
        kind.programs.cordoned(kind.victim),
        tagged_anew(kind, "triage-operator:0.1.0", "later"),
        site.held("at-upgrade", "lost-before-it", "lost-in-it") as holds,
    ):
        old = await operators.leader(kind)
        lost_before = await site.kill("lost-before-it")
        await holds["lost-before-it"].cut_off()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(kind.configure(chart=later_chart(tmp_path), image={"tag": "later"}))
                await operators.left(kind, old)
                lost_meanwhile = await site.kill("lost-in-it")
                await holds["lost-in-it"].cut_off()
            asked_after = await site.create_run("asked-after", **{FIELD: "kept"})
            assert asked_after["spec"][FIELD] == "kept"
            await holds["at-upgrade"].release()
            await site.went_on("SIGKILL before helm upgrade", "lost-before-it", lost_before)
            await site.went_on("SIGKILL during helm upgrade", "lost-in-it", lost_meanwhile)
            await site.succeeded("at-upgrade")
            await site.succeeded("asked-after")
            for name in ("lost-before-it", "lost-in-it"):
                await site.succeeded(name, [Cause.SIGKILL])
        finally:
            await kind.configure()
    asked_last = await site.create_run("asked-last", **{FIELD: "dropped"})
    assert FIELD not in asked_last["spec"]
    await site.succeeded("asked-last")


async def test_runs_outlive_an_uninstallation_and_end_after_the_next_installation(
    kind: Kind, site: KindSite, tmp_path: Path
) -> None:
    await kind.configure(chart=chart_that_keeps_its_database(tmp_path))
    async with kind.programs.cordoned(kind.victim), site.held("going-on-alone", "lost-alone") as holds:
        process = await site.process("going-on-alone")
        async with kind.uninstalled():
            await holds["going-on-alone"].release()
            await process.ended()
            assert len(await site.issues("going-on-alone")) == 1
            lost_at = await site.kill("lost-alone")
            await holds["lost-alone"].cut_off()
            await site.create_run("asked-alone")
            assert {run.get("status", {}).get("phase") for run in site.runs.objects.values()} <= {
                "Running",
                None,
            }
        await site.went_on("SIGKILL without a release", "lost-alone", lost_at)
        await site.succeeded("going-on-alone")
        await site.succeeded("lost-alone", [Cause.SIGKILL])
        await site.succeeded("asked-alone")
