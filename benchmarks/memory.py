"""What one attempt takes of memory and connections, beside bare ADK: each in a fresh process of its own."""

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

RUNS: Final = 5
"""Runs of one process, so that what a run leaves behind shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Peak resident memory in MiB, and the most connections to Postgres at the same time."""

    name: str
    resident_mib: float
    connections: int


def measure_footprints(bare_dsn: str, our_dsn: str) -> list[Footprint]:
    """Run either side in a process of its own. ``bare_dsn`` is an empty database, ``our_dsn`` a migrated one."""
    return [
        _run("bare ADK on Postgres", "bare", bare_dsn),
        _run("ours, fenced and journaled", "ours", our_dsn),
    ]


def _run(name: str, side: str, dsn: str) -> Footprint:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.memory", side, dsn]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return Footprint(name=name, resident_mib=float(told[0]), connections=int(told[1]))


async def _work_bare(dsn: str, count: Callable[[], None]) -> None:
    from google.adk.runners import Runner
    from google.genai import types

    from benchmarks.apps import build_app, open_bare_service

    message = types.Content(role="user", parts=[types.Part(text="Go.")])
    async with open_bare_service(dsn) as service:
        for _ in range(RUNS):
            session = await service.create_session(app_name="bench", user_id="user")
            runner = Runner(app=build_app(), session_service=service)
            async for _event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
                count()


async def _work_ours(dsn: str, count: Callable[[], None]) -> None:
    from benchmarks.attempts import open_our_attempt
    from triage_contract.database.direct import DirectConnection
    from triage_contract.database.url import DatabaseUrl

    url = DatabaseUrl.parse(dsn)
    for _ in range(RUNS):
        heartbeat = await DirectConnection.open(url, application="bench")
        async with open_our_attempt(url) as attempt:
            await attempt.work(await attempt.begin())
            count()
        await heartbeat.close()


def _main() -> None:
    import psutil

    side, dsn = sys.argv[1:]
    process, most = psutil.Process(), 0

    def count() -> None:
        nonlocal most
        most = max(most, len(process.net_connections("tcp")))

    asyncio.run(_work_bare(dsn, count) if side == "bare" else _work_ours(dsn, count))
    # Of this program alone: what `getrusage` gives has the memory in it of the process that started it.
    status = Path("/proc/self/status").read_text()
    peak_kib = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    click.echo(f"{peak_kib / 1024:.1f} {most}")


if __name__ == "__main__":
    _main()
