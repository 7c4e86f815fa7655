"""The operator of a local cluster: the real one, as a process that can be killed and started again."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import aiohttp

from triage_local.exceptions import ProgramError
from triage_local.guard import Guard
from triage_local.ports import HOST, free_port
from triage_local.processes import Process, tail

_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 3.0

# An operator that starts again under the identity of a dead one need not wait for its Lease to run out.
_IDENTITY: Final = "local"


class LocalOperator:
    """``triage-operator run`` on one database and one API server."""

    def __init__(
        self,
        *,
        database_url: str,
        kubeconfig: Path,
        log: Path,
        guard: Guard,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Prepare, and start nothing.

        Args:
            database_url: Of a migrated database, with the password.
            kubeconfig: Of the API server.
            log: File to which it writes, one start after the other.
            guard: Ends it should we be killed.
            settings: Further variables of its environment, which win over those set here.
        """
        self.log = log
        self.url = f"http://{HOST}:{free_port()}"
        """Where it serves ``/metrics``, ``/healthz`` and ``/readyz``."""
        self._environment = {
            "TRIAGE_OPERATOR_DATABASE_URL": database_url,
            "TRIAGE_OPERATOR_KUBE_CONFIG": str(kubeconfig),
            "TRIAGE_OPERATOR_LEASE_IDENTITY": _IDENTITY,
            "TRIAGE_OPERATOR_LOG_FORMAT": "text",
            "TRIAGE_OPERATOR_SERVE_HOST": HOST,
            "TRIAGE_OPERATOR_SERVE_PORT": self.url.rpartition(":")[2],
            **(settings or {}),
        }
        self._guard = guard
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """Its process, while it runs."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start it, and wait until it leads and has compared what is with what should be.

        Raises:
            ProgramError: It ended instead; the message has the end of its log.
            PatienceError: It is not ready after a minute.
        """
        process = self._process = await Process.start(
            "triage-operator", "run", environment=self._environment, log=self.log, guard=self._guard
        )
        await process.until_ready(self._is_ready, _START_SECONDS)

    async def wait(self) -> int:
        """Wait for its end, and give its exit code; negative: the number of the signal that ended it."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> None:
        """End it by SIGKILL."""
        if self._process is not None:
            process, self._process = self._process, None
            await process.kill()

    async def stop(self) -> None:
        """End it as Kubernetes would: it gives its Lease back."""
        if self._process is not None:
            process, self._process = self._process, None
            await process.stop(_STOP_SECONDS)

    async def metrics(self) -> str:
        """Give what it exports now.

        Raises:
            ProgramError: It does not answer.
        """
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.url}/metrics") as response:
                return await response.text()
        except aiohttp.ClientError as error:
            raise ProgramError(f"the operator gives no metrics: {error}") from error

    async def _is_ready(self) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{self.url}/readyz") as response:
                return response.ok
        except aiohttp.ClientError:
            return False

    def tail(self) -> str:
        """Give the end of its log."""
        return tail(self.log)
