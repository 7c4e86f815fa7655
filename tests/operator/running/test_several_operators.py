"""Several operators: one works and one stands by, or by mishap both work."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from support.databases import Database
from support.operated import Cluster, operating, settings_for, until
from support.stub_agent import StubAgents
from triage_local.apiserver.faults import Answer
from triage_operator.running import run


async def test_a_standby_takes_over_when_the_leader_stops(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with AsyncExitStack() as first, AsyncExitStack() as second:
        await first.enter_async_context(operating(settings_for(cluster, database)))
        await cluster.create_run("first")
        await cluster.pod_of(1, "first")
        await second.enter_async_context(operating(settings_for(cluster, database)))
        await first.aclose()
        await cluster.create_run("second")
        await agents.finish(1, "first")
        await agents.finish(1, "second")
        for name in ("first", "second"):
            await cluster.run_in("Succeeded", name)


async def test_two_that_both_lead_do_no_harm(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    one, two = settings_for(cluster, database), settings_for(cluster, database)
    two = replace(two, lease=replace(two.lease, name="another-lease"))
    names = [f"run-{number}" for number in range(6)]
    async with operating(one), operating(two):
        for name in names:
            await cluster.create_run(name)
        for name in names:
            pod, agent = await agents.start(1, name)
            await agent.die()
            await cluster.end_pod(pod, 137)
        for name in names:
            await agents.finish(2, name)
        for name in names:
            status = (await cluster.run_in("Succeeded", name))["status"]
            assert [one["outcome"] for one in status["attempts"]] == ["lost", "finished"]
    assert len(await cluster.pods()) == 2 * len(names)
    counters = await database.values(
        "SELECT name, sum(value)::int FROM triage.totals"
        " WHERE name IN ('losses', 'resumes', 'runs_ended') GROUP BY name ORDER BY name"
    )
    assert counters == [("losses", 6), ("resumes", 6), ("runs_ended", 6)]


async def test_an_operator_whose_watches_fail_for_good_ends(cluster: Cluster, database: Database) -> None:
    await cluster.create_agent()
    stop = asyncio.Event()
    operator = asyncio.create_task(run(settings_for(cluster, database), stop))
    await cluster.create_run()
    await cluster.pod_of(1)

    async def failed() -> bool | None:
        return True if cluster.server.faults.fail_watches(500, "triageruns") else None

    await until(failed)
    with pytest.raises(Exception, match="watch-stream"):
        await asyncio.wait_for(operator, 15)
    assert "holderIdentity" not in (await cluster.lease())["spec"]


class Process:
    """An operator in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self._url = f"http://127.0.0.1:{port}"

    async def ready(self) -> bool | None:
        """Say whether it says that it is ready; None: it does not."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self._url}/readyz") as response:
                return True if response.status == 200 else None
        except aiohttp.ClientError:
            return None


@asynccontextmanager
async def _process(cluster: Cluster, database: Database, port: int, log: Path) -> AsyncIterator[Process]:
    environment = {
        **os.environ,
        "TRIAGE_OPERATOR_DATABASE_URL": database.url.dsn,
        "TRIAGE_OPERATOR_KUBE_CONFIG": str(cluster.settings.config),
        "TRIAGE_OPERATOR_LEASE_IDENTITY": "the-one",
        "TRIAGE_OPERATOR_SERVE_HOST": "127.0.0.1",
        "TRIAGE_OPERATOR_SERVE_PORT": str(port),
    }
    with log.open("ab") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "triage_operator", "run", env=environment, stdout=file, stderr=file
        )
    try:
        yield Process(process, port)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_killed_process_is_followed_by_another_and_ends_in_order_at_sigterm(
    cluster: Cluster, database: Database, agents: StubAgents, tmp_path: Path, unused_tcp_port: int
) -> None:
    log = tmp_path / "log"
    await cluster.create_agent()
    await cluster.create_run()
    async with _process(cluster, database, unused_tcp_port, log):
        pod, agent = await agents.start(1)
    # It was killed.
    await agent.die()
    await cluster.remove_pod(pod)
    async with _process(cluster, database, unused_tcp_port, log) as second:
        await agents.finish(2)
        status = (await cluster.run_in("Succeeded"))["status"]
        assert status["lastCause"] == "vanished"
        await until(second.ready)
        second.process.send_signal(signal.SIGTERM)
        told_at = time.monotonic()
        assert await second.process.wait() == 0
        assert time.monotonic() - told_at < 5
    assert "holderIdentity" not in (await cluster.lease())["spec"]
    assert database.url.dsn not in log.read_text()
    assert '"message": "decided"' in log.read_text()


async def test_an_operator_without_resource_definitions_waits_for_them(
    cluster: Cluster, database: Database
) -> None:
    cluster.server.faults.answer(Answer(method="GET", target="/v1alpha1$", status=404, left=3))
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await cluster.pod_of(1)


async def test_a_process_whose_watches_fail_for_good_exits_with_an_error(
    cluster: Cluster, database: Database, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with _process(cluster, database, unused_tcp_port, tmp_path / "log") as operator:
        await until(operator.ready, seconds=20)

        async def failed() -> bool | None:
            return True if cluster.server.faults.fail_watches(500, "triageruns") else None

        await until(failed)
        assert await asyncio.wait_for(operator.process.wait(), 20) == 1
