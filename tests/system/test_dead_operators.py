"""The operator dies, is away, or is there twice: every run ends as if it had been one and always there."""

import contextlib

import pytest

from support.site import Site
from support.system import System
from triage_local.demo.holds import Place, holding

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_what_befalls_runs_while_the_operator_is_dead_is_made_good_when_it_is_back(
    system: System, site: Site
) -> None:
    held = ("killed", "removed", "evicted", "going-on", "given-up", "replaced")
    operator = site.cluster.operator
    async with contextlib.AsyncExitStack() as stack:
        holds = {
            name: await stack.enter_async_context(holding(site.engine, name, Place.IN_TOOL)) for name in held
        }
        for name in held:
            await site.create_run(name)
        for hold in holds.values():
            await hold.reached()
        gone = await site.container("removed")
        await operator.kill()
        await site.kill("killed")
        await holds["killed"].cut_off()
        await site.delete("Pod", (await site.pod("removed"))["metadata"]["name"], grace_seconds=0)
        await gone.reap()
        await holds["removed"].cut_off()
        await site.evict("evicted")
        await site.asked_to_leave("evicted")
        await site.change("TriageRun", "given-up", cancel=True)
        old = site.uid("replaced")
        await site.delete("TriageRun", "replaced")
        await site.create_run("replaced")
        await site.create_run("late")
        await holds["evicted"].release()
        await holds["going-on"].release()
        await (await site.container("going-on")).reap()
        await operator.start()
        given_up = await site.ended("given-up")
        await holds["given-up"].cut_off()
        await site.succeeded("killed", ["sigkill"])
        removed = await site.ended("removed")
        evicted = await site.ended("evicted")
        for name, status in (("removed", removed), ("evicted", evicted)):
            await site.succeeded(name, [status["lastCause"]])
        await site.succeeded("going-on")
        await site.succeeded("late")
        await holds["replaced"].release()
        await site.succeeded("replaced")
    assert site.uid("replaced") != old
    assert await site.issues_of(old) == []
    # Where a pod is gone, what its process noted is left.
    assert removed["lastCause"] in ("vanished", "sigterm")
    assert evicted["lastCause"] in ("drain", "sigterm")
    assert given_up["phase"] == "Cancelled"
    assert await site.issues("given-up") == []
    assert await system.counted("triage_losses_total", namespace=site.namespace) == 3


async def test_two_operators_at_once_do_no_harm(system: System, site: Site) -> None:
    names = ("one", "two", "three")
    # With a Lease of its own it does not stand by, but works on the same runs.
    other = system.operator("other", {"TRIAGE_OPERATOR_LEASE_NAME": "another"})
    await other.start()
    try:
        async with contextlib.AsyncExitStack() as stack:
            holds = [
                await stack.enter_async_context(holding(site.engine, name, Place.AFTER_WRITE))
                for name in names
            ]
            for name in names:
                await site.create_run(name)
            for name, hold in zip(names, holds, strict=True):
                await hold.reached()
                await site.kill(name)
                await hold.cut_off()
            for name in names:
                await site.succeeded(name, ["sigkill"])
                assert await site.suppressed(name) == (1, 0)
    finally:
        await other.stop()
    assert await system.counted("triage_losses_total", namespace=site.namespace, cause="sigkill") == 3
    assert await system.counted("triage_resumes_total", namespace=site.namespace, cause="sigkill") == 3
    assert await system.counted("triage_runs_ended_total", namespace=site.namespace) == 3


async def test_an_operator_killed_again_and_again_finishes_what_it_began(system: System, site: Site) -> None:
    names = [f"run-{number}" for number in range(3)]
    operator = site.cluster.operator
    async with contextlib.AsyncExitStack() as stack:
        holds = {
            name: await stack.enter_async_context(holding(site.engine, name, Place.IN_TOOL)) for name in names
        }
        for name in names:
            await site.create_run(name)
        for name in names:
            await holds[name].reached()
            await operator.kill()
            await site.kill(name)
            await holds[name].cut_off()
            await operator.start()
        for name in names:
            await site.succeeded(name, ["sigkill"])
    assert await system.counted("triage_runs_ended_total", namespace=site.namespace, state="succeeded") == 3
    assert await system.counted("triage_losses_total", namespace=site.namespace, cause="sigkill") == 3
