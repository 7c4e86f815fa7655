"""What one attempt takes of memory and connections, beside bare ADK: each in a fresh process of its own."""

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

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


async def _work(side: str, dsn: str) -> int:
    """Run one side ``RUNS`` times; gives the most connections that it had."""
    import psutil

    from benchmarks.agents import build_app, open_our_attempt
    from triage_contract.database.url import DatabaseUrl

    process, most = psutil.Process(), 0

    def count() -> None:
        nonlocal most
        most = max(most, len(process.net_connections("tcp")))

    if side == "ours":
        for _ in range(RUNS):
            async with open_our_attempt(DatabaseUrl.parse(dsn)) as attempt:
                await attempt.work(await attempt.begin())
                count()
        return most + 1  # the direct connection of the heartbeat, which an attempt's process has beside these
    from google.adk.runners import Runner
    from google.adk.sessions.database_session_service import DatabaseSessionService
    from google.genai import types

    message = types.Content(role="user", parts=[types.Part(text="Go.")])
    service = DatabaseSessionService(dsn.replace("postgresql://", "postgresql+asyncpg://"))
    for _ in range(RUNS):
        session = await service.create_session(app_name="bench", user_id="user")
        runner = Runner(app=build_app(), session_service=service)
        async for _event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
            count()
    await service.close()
    return most


def _main() -> None:
    import resource

    side, dsn = sys.argv[1:]
    connections = asyncio.run(_work(side, dsn))
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{peak_kib / 1024:.1f} {connections}")  # noqa: T201


if __name__ == "__main__":
    _main()
