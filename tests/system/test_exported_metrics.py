"""What the operator serves: counters that outlive it, the names of the reference, and how it is."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest

from support.site import Site
from support.system import System
from triage_local.apiserver import Answer
from triage_local.operating import LocalOperator
from triage_operator.metrics.declared import COUNTERS

pytestmark = pytest.mark.asyncio(loop_scope="session")

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
KEPT = {f"{counter.full_name}_total" for counter in COUNTERS}
STALE_SECONDS = 4


async def test_counters_go_on_where_they_were_after_a_restart(system: System, site: Site) -> None:
    await site.create_run("counted")
    await site.succeeded("counted")
    before = await _counters(system)
    await site.cluster.operator.kill()
    await site.cluster.operator.start()
    # What is finished stays so: without its pod, and whatever somebody writes into its status.
    await site.delete("Pod", (await site.pod("counted"))["metadata"]["name"], grace_seconds=0)
    await site.overwrite_status("counted", phase="Running", issue="99")
    await site.succeeded("counted")
    after = await _counters(system)
    assert after.items() >= before.items()
    ended = {"namespace": site.namespace, "state": "succeeded", "reason": "Completed"}
    assert await system.counted("triage_runs_ended_total", **ended) == 1
    assert await system.counted("triage_runs", phase="Succeeded") == 1
    assert await system.counted("triage_leader") == 1


async def test_all_that_is_exported_is_in_the_reference(site: Site) -> None:
    exported = re.findall(r"^# TYPE (\S+)", await site.cluster.operator.metrics(), re.MULTILINE)
    documented = REFERENCE.read_text()
    assert [name for name in exported if name.startswith("triage_") and f"`{name}`" not in documented] == []


async def test_liveness_is_red_while_a_watch_hears_nothing(system: System, site: Site) -> None:
    # It works on one namespace, so that its watches, but for that of nodes, can be told from the other operator's.
    operator = system.operator(
        "watching",
        {
            "TRIAGE_OPERATOR_LEASE_NAME": "watching",
            "TRIAGE_OPERATOR_NAMESPACE": site.namespace,
            "TRIAGE_OPERATOR_SERVE_STALE_SECONDS": str(STALE_SECONDS),
        },
    )
    faults, watches = system.faults, f"/namespaces/{site.namespace}/{{}}.*watch"
    await operator.start()
    try:
        # A watch that breaks off is asked for anew, and the answer is a word.
        quiet = f"{watches.format('')}|/nodes.*watch"
        async with _again_and_again(partial(faults.drop_watches, quiet)):
            for _ in range(STALE_SECONDS + 2):
                assert await system.probe(operator, "healthz") == (200, "ok\n")
                await asyncio.sleep(1)
            refusal = Answer(method="GET", target=watches.format("triageruns"), status=500, left=10_000)
            faults.answer(refusal)
            await _until_status(system, operator, 503)
            _, said = await system.probe(operator, "healthz")
            assert said.startswith("no word on the watch of triageruns for ")
            faults.clear()
            await _until_status(system, operator, 200)
    finally:
        faults.clear()
        await operator.stop()


@contextlib.asynccontextmanager
async def _again_and_again(do: Callable[[], object]) -> AsyncIterator[None]:
    async def repeat() -> None:
        while True:
            do()
            await asyncio.sleep(0.5)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()


async def _until_status(system: System, operator: LocalOperator, status: int) -> None:
    async with asyncio.timeout(30):
        while (await system.probe(operator, "healthz"))[0] != status:
            await asyncio.sleep(0.1)


async def _counters(system: System) -> dict[object, float]:
    return {
        (name, labels): value for (name, labels), value in (await system.samples()).items() if name in KEPT
    }
