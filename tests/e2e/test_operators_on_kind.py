"""Operators that are replaced, or away, while pods are being lost."""

import asyncio
from datetime import UTC, datetime

import pytest

from support.kind import operators
from support.kind.cluster import Kind
from support.kind.site import KindSite
from triage_contract.states import Cause
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(420)]


@pytest.mark.parametrize("replicas", [1, 2])
async def test_runs_lost_while_operators_are_replaced_go_on(
    kind: Kind, site: KindSite, replicas: int
) -> None:
    names = ("lost-before", "lost-at-once", "lost-between", "lost-after")
    async with operators.replicated(kind, replicas), site.held(*names) as holds:
        lost_at = {}

        async def lose(name: str) -> None:
            lost_at[name] = await site.kill(name)
            await holds[name].cut_off()

        old = await operators.leader(kind)
        await lose("lost-before")
        await operators.restart(kind)
        await lose("lost-at-once")
        await operators.left(kind, old)
        await lose("lost-between")
        await kind.programs.rolled_out(operators.OPERATOR)
        await lose("lost-after")
        for name in names:
            await site.went_on(f"SIGKILL, {replicas} of the operator replaced", name, lost_at[name])
            await site.succeeded(name, [Cause.SIGKILL])
        assert await operators.leader(kind) != old


async def test_a_drain_does_not_wait_for_an_operator_that_is_away(kind: Kind, site: KindSite) -> None:
    async with holding(site.engine, "drained", Place.IN_TOOL) as hold:
        await site.create_run_on(kind.victim, "drained")
        await hold.reached()
        try:
            async with operators.replicated(kind, 0):
                lost_at = datetime.now(UTC)
                async with asyncio.TaskGroup() as group:
                    group.create_task(kind.programs.drain(kind.victim))
                    await site.asked_to_leave("drained")
                    await hold.release()
                assert await site.issues("drained") != []
            await site.went_on("kubectl drain, no operator meanwhile", "drained", lost_at)
            status = await site.ended("drained")
        finally:
            await kind.programs.kubectl("uncordon", kind.victim)
    # The pod is gone with what it said; what its process noted is left.
    assert status["lastCause"] in (Cause.DRAIN, Cause.SIGTERM)
    await site.succeeded("drained", [status["lastCause"]])
    assert [one["node"] for one in status["attempts"]] == [kind.victim, kind.steady]


async def test_a_namespace_goes_without_waiting_for_an_operator_that_is_away(
    kind: Kind, site: KindSite
) -> None:
    async with holding(site.engine, "orphaned", Place.IN_TOOL) as hold:
        await site.create_run("orphaned")
        await hold.reached()
        uid = site.uid("orphaned")
        async with operators.replicated(kind, 0):
            await kind.programs.kubectl("delete", "namespace", site.namespace, "--timeout=150s")
            await hold.cut_off()
    await site.close()
    assert await site.issues_of(uid) == []
