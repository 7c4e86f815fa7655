"""The Prometheus of this machine."""

import asyncio
from pathlib import Path
from typing import Final

from triage_local.exceptions import ProgramError

_FIND: Final = Path(__file__).parents[1] / "hack" / "prometheus-programs"


async def find_prometheus() -> Path:
    """Give the server: the one on the PATH, else one that is fetched into the cache.

    Raises:
        ProgramError: There is none, and none can be fetched; the message says what is missing.
    """
    process = await asyncio.create_subprocess_exec(
        str(_FIND), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    if process.returncode != 0:
        raise ProgramError(errors.decode().strip())
    return Path(output.decode().strip()) / "prometheus"
