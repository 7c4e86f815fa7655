"""Nodes that are about to go, that freeze, and that are gone for good."""

import contextlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from support.kind.cluster import Kind
from support.kind.site import KindSite
from support.sight import Json
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(420)]

_TAINT = "ToBeDeletedByClusterAutoscaler=1:NoSchedule"
_GONE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@pytest.mark.parametrize(
    ("case", "begin", "end"),
    [
        ("a cordoned node", ("cordon", "{}"), ("uncordon", "{}")),
        (
            "a node with an autoscaler's taint",
            ("taint", "node", "{}", _TAINT),
            ("taint", "node", "{}", f"{_TAINT}-"),
        ),
    ],
)
async def test_a_node_about_to_go_is_left_at_the_next_boundary(
    kind: Kind, site: KindSite, case: str, begin: tuple[str, ...], end: tuple[str, ...]
) -> None:
    async with holding(site.engine, "leaving", Place.IN_TOOL) as hold:
        await site.create_run_on(kind.victim, "leaving")
        await hold.reached()
        begun_at = datetime.now(UTC)
        await kind.programs.kubectl(*(part.format(kind.victim) for part in begin))
        try:
            await site.told("leaving", "HandingOff")
            await site.asked_to_hand_off("leaving")
            await hold.release()
            await site.went_on(case, "leaving", begun_at)
            status = await site.succeeded("leaving", ["drain"])
        finally:
            await kind.programs.kubectl(*(part.format(kind.victim) for part in end))
    assert [one["node"] for one in status["attempts"]] == [kind.victim, kind.steady]
    assert status["attempts"][0]["outcome"] == "handed_off"
    assert await site.suppressed("leaving") == (0, 0)


async def test_a_frozen_node_is_given_up_and_its_zombie_changes_nothing(kind: Kind, site: KindSite) -> None:
    await kind.fault(hang=True, report=site.report("frozen"), step="file_issue")
    await site.create_run_on(kind.victim, "frozen")
    await kind.asked(site.report("frozen"), "file_issue")
    zombie = await site.process("frozen")
    frozen_at = datetime.now(UTC)
    async with _away(kind, "pause", "unpause"):
        await site.went_on("a frozen node", "frozen", frozen_at)
        status = await site.ended("frozen")
        stored = await site.stored("frozen")
    # It hears the model now, and wants to file what it was told to.
    await kind.release()
    await zombie.ended()
    assert await site.stored("frozen") == stored
    await _left_a_dead_node(site, "frozen", status)


async def test_a_node_gone_for_good_keeps_no_run(kind: Kind, site: KindSite) -> None:
    async with holding(site.engine, "gone", Place.IN_TOOL) as hold:
        await site.create_run_on(kind.victim, "gone")
        await hold.reached()
        gone_at = datetime.now(UTC)
        async with _away(kind, "kill", "start"):
            await hold.cut_off()
            await kind.programs.kubectl("taint", "node", kind.victim, _GONE)
            try:
                await site.went_on("a node gone for good", "gone", gone_at)
                status = await site.ended("gone")
            finally:
                await kind.programs.kubectl("taint", "node", kind.victim, f"{_GONE}-")
    await _left_a_dead_node(site, "gone", status)


async def _left_a_dead_node(site: KindSite, run: str, status: Json) -> None:
    """See that a run ended as it should. A successor may be bound to the node too, before it counts as not ready."""
    # None: nobody has said yet why the lock of its process was free.
    causes = [one.get("cause") for one in status["attempts"][:-1]]
    assert set(causes) <= {None, "node_lost", "node_gone", "node_unreachable", "unresponsive", "vanished"}
    await site.succeeded(run, causes)


@contextlib.asynccontextmanager
async def _away(kind: Kind, go: str, come: str) -> AsyncIterator[None]:
    """Take a node away by a command of Docker's, and bring it back by another."""
    await kind.programs.docker(go, kind.victim)
    try:
        yield
    finally:
        await kind.programs.docker(come, kind.victim)
        await kind.await_node(kind.victim)
