"""The database of the release in trouble: killed, or out of reach."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from sqlalchemy.exc import DBAPIError

from support.kind.cluster import Kind
from support.kind.processes import Process
from support.kind.programs import SYSTEM

_POD: Final = ("pod", "triage-operator-postgres-0", "--namespace", SYSTEM)
_SERVICE: Final = ("service", "triage-operator-postgres", "--namespace", SYSTEM, "--type=json")
_NOBODY: Final = "/spec/selector/nobody"


async def kill(kind: Kind) -> None:
    """Kill all its processes without a word, and wait until it is there again, for who tests too."""
    pod = json.loads(await kind.programs.kubectl("get", *_POD, "--output=json"))
    (status,) = pod["status"]["containerStatuses"]
    await (await Process.find(kind.programs, pod, "postgres")).signal("KILL")
    restarts = f"jsonpath={{.status.containerStatuses[0].restartCount}}={status['restartCount'] + 1}"
    for condition in (restarts, "condition=Ready"):
        await kind.programs.kubectl("wait", *_POD, f"--for={condition}", "--timeout=170s")
    # That the nodes lead to it again is told nowhere.
    async with asyncio.timeout(30):
        while not await _answers(kind):
            await asyncio.sleep(0.1)


@asynccontextmanager
async def away(kind: Kind) -> AsyncIterator[None]:
    """Let operator and agents find nobody at its address until the block ends; who tests goes another way to it.

    The connections that stood are cut off.
    """
    await _patch(kind, {"op": "add", "path": _NOBODY, "value": "yes"})
    try:
        await kill(kind)
        yield
    finally:
        await _patch(kind, {"op": "remove", "path": _NOBODY})


async def _patch(kind: Kind, change: dict[str, str]) -> None:
    await kind.programs.kubectl("patch", *_SERVICE, f"--patch={json.dumps([change])}")


async def _answers(kind: Kind) -> bool:
    try:
        async with kind.engine.connect():
            return True
    except (OSError, DBAPIError):
        return False
