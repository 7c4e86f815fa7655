"""The Prometheus server of this machine."""

import asyncio
import shutil
from pathlib import Path
from typing import Final

from triage_local.exceptions import ProgramError

_FETCH: Final = Path(__file__).parents[1] / "hack" / "prometheus-programs"


async def find_prometheus() -> Path:
    """Give the server: the one on the PATH, else the one that ``hack/prometheus-programs`` fetches.

    Raises:
        ProgramError: There is none, and none can be fetched.
    """
    if found := shutil.which("prometheus"):
        return Path(found)
    process = await asyncio.create_subprocess_exec(
        str(_FETCH), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    folder = Path(output.decode().strip())
    if process.returncode != 0 or not (folder / "prometheus").exists():
        raise ProgramError(
            f"no prometheus on the PATH, and {_FETCH.name} gives none: {errors.decode().strip()}"
        )
    return folder / "prometheus"
