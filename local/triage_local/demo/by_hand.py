"""The command line by hand: a resume that is refused, and what happens without an idempotency key."""

import re
from typing import Any, Final

from sqlalchemy import text

from triage_contract.database.engine import open_engine
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import DocsEnv
from triage_contract.states import Phase, Verdict
from triage_local.cluster import LocalCluster
from triage_local.exceptions import ProgramError
from triage_local.processes import Finished

Json = dict[str, Any]

_NO_KEY: Final = "--no-idempotency-key"
_KILLED: Final = 137
_STARTED: Final = re.compile(r"^session (\S+)\ninvocation (\S+)$", re.MULTILINE)
_ISSUES: Final = text("SELECT count(*) FROM triage.issues")


async def refused_resume(cluster: LocalCluster, status: Json) -> str:
    """Try to resume a finished run by the ids in its status.

    Returns:
        What was said to it; empty: it was not refused.

    Raises:
        ProgramError: The run is not finished.
    """
    if status["phase"] != Phase.SUCCEEDED:
        raise ProgramError(f"no resume was tried: that run is {status['phase']}")
    finished = await _triage(
        cluster, cluster.database_url, "resume", status["session"], status["invocationId"]
    )
    said = finished.output.strip()
    return said if finished.exit_code == 1 and Verdict.FINISHED in said else ""


async def crash_without_key(cluster: LocalCluster, report: str) -> int:
    """Crash right after the tracker's write, resume, and give the number of issues that the report has then.

    All that is as in the runs, but for the key; in a database of its own.

    Raises:
        ProgramError: The crash did not come, or the resume failed.
    """
    database = cluster.scratch_url
    started = await _triage(cluster, database, "start", _NO_KEY, "--crash-after-write", report)
    ids = _STARTED.search(started.output)
    if started.exit_code != _KILLED or ids is None:
        raise ProgramError(f"triage start did not crash as it was told to: {started.output.strip()}")
    resumed = await _triage(cluster, database, "resume", _NO_KEY, *ids.groups())
    if resumed.exit_code != 0:
        raise ProgramError(f"triage resume failed: {resumed.output.strip()}")
    engine = open_engine(DatabaseUrl.parse(database), application="triage-demo", pool_size=1)
    try:
        async with engine.connect() as connection:
            count: int = (await connection.execute(_ISSUES)).scalar_one()
            return count
    finally:
        await engine.dispose()


async def _triage(cluster: LocalCluster, database: str, *arguments: str) -> Finished:
    environment = {**cluster.model_environment(), DocsEnv.DB.value: database}
    return await cluster.run("triage", *arguments, **environment)
