"""What the API server hears of a pod: its status, and that it may go."""

import asyncio
import logging
from collections.abc import Callable

from triage_local.kubelet.cluster import STRATEGIC, Cluster, Json
from triage_local.kubelet.exceptions import ClusterError

_logger = logging.getLogger(__name__)

_RETRY_SECONDS = 0.2


class Reporter:
    """Writes the status of one pod whenever it is said to have changed."""

    def __init__(
        self, pod: Json, cluster: Cluster, online: asyncio.Event, build: Callable[[Json], Json]
    ) -> None:
        """Prepare.

        Args:
            pod: The pod; of a successor with the same name and another UID nothing is written.
            cluster: The API server.
            online: Set while the node may talk to it.
            build: Gives the status, from the one that was written before.
        """
        metadata = pod["metadata"]
        self._uid = metadata["uid"]
        self._path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        self._cluster = cluster
        self._online = online
        self._build = build
        self._changed = asyncio.Event()
        self._settled = False
        self.gone = asyncio.Event()
        """The object is no longer there."""

    def change(self) -> None:
        """Say that there may be something to write."""
        self._changed.set()

    def settle(self) -> None:
        """Say that nothing will change any more: ``run`` ends once that is written."""
        self._settled = True
        self._changed.set()

    async def run(self) -> None:
        """Write each status that differs from the one before, until settled or gone."""
        written: Json = {}
        while not self.gone.is_set():
            await self._changed.wait()
            self._changed.clear()
            last = self._settled
            status = self._build(written)
            if status != written:
                await self._insist(
                    "PATCH", f"{self._path}/status", {"metadata": {"uid": self._uid}, "status": status}
                )
                written = status
            if last:
                return

    async def finalize(self) -> None:
        """Let the object go, since the pod's deletion was asked for and its processes have ended."""
        if not self.gone.is_set():
            preconditions = {"uid": self._uid}
            await self._insist(
                "DELETE", self._path, {"gracePeriodSeconds": 0, "preconditions": preconditions}
            )

    async def _insist(self, method: str, path: str, body: Json) -> None:
        """Send a request until it is done, or there is no object of ours to do it to."""
        while not self.gone.is_set():
            await self._online.wait()
            try:
                await self._cluster.request(
                    method, path, body, content_type=STRATEGIC if method == "PATCH" else "application/json"
                )
            except ClusterError as error:
                if error.status in (404, 409, 422) and await self._is_gone():
                    self.gone.set()
                    return
                _logger.warning(
                    "Could not report on a pod", extra={"status": error.status, "error": str(error)}
                )
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _is_gone(self) -> bool:
        try:
            found = await self._cluster.request("GET", self._path)
        except ClusterError as error:
            return error.status == 404
        return bool(found["metadata"]["uid"] != self._uid)
