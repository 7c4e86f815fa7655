"""Leadership by a Lease: of several operators one works, the others stand by.

The client library has an election too (``kubernetes.aio.leaderelection``). It keeps the Lease when it stops,
so that a standby waits for it to run out; it judges a Lease's age by the wall clock; it writes local times as
UTC; and a request that hangs outlasts its renew deadline. Hence this one, which is no larger.

Leadership is a matter of economy here: the fence in the database keeps even two leaders harmless.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from triage_operator.exceptions import KubeConflictError, KubeError
from triage_operator.kube import Kube, Object
from triage_operator.settings import LeaseSettings

_logger = logging.getLogger(__name__)


class Leadership:
    """This operator's claim to a Lease."""

    def __init__(self, kube: Kube, settings: LeaseSettings) -> None:
        self._kube = kube
        self._settings = settings
        self._lease: Object | None = None
        self._version: str | None = None
        self._seen_at = 0.0
        self.leading = False
        """Whether the Lease is ours, as far as this process knows."""

    async def keep(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the Lease and run ``lead`` while it is ours, over and over; release it when cancelled.

        ``lead`` is cancelled when the Lease is lost. Where it ends by itself, or raises, so does this.
        """
        while True:
            if not await self._acquire():
                await asyncio.sleep(self._settings.retry_seconds)
            elif await self._lead(lead):
                return

    async def _lead(self, lead: Callable[[], Awaitable[None]]) -> bool:
        """Run ``lead`` until it ends (True), or until the Lease is lost (False)."""
        self.leading = True
        _logger.info("leading", extra={"action": "lead", "identity": self._settings.identity})
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew_until_lost())
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.leading = False
            lost = not leading.done() and renewing.done()
            leading.cancel()
            renewing.cancel()
            await asyncio.wait((leading, renewing))
            if not lost:
                await self._release()
        if lost:
            renewing.result()
            _logger.warning("lost the lease", extra={"action": "stand_by"})
        else:
            leading.result()
        return not lost

    async def _renew_until_lost(self) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._settings.renew_deadline_seconds
        while clock() < deadline:
            await asyncio.sleep(self._settings.retry_seconds)
            # A renewal that hangs must not outlast the deadline.
            try:
                async with asyncio.timeout_at(deadline):
                    renewed = await self._acquire()
            except TimeoutError:
                return
            if renewed:
                deadline = clock() + self._settings.renew_deadline_seconds
            elif self._held_by_another():
                return

    async def _acquire(self) -> bool:
        """Try to take the Lease, or to renew it; say whether it is ours."""
        try:
            lease = await self._kube.get_lease(self._settings.namespace, self._settings.name)
            if lease is None:
                self._see(await self._kube.create_lease(self._settings.namespace, self._new()))
                return True
            self._see(lease)
            if self._held_by_another():
                return False
            await self._replace({**lease, "spec": self._spec(lease.get("spec") or {})})
        except KubeConflictError:
            return False
        except KubeError as error:
            _logger.warning("cannot reach the lease", extra={"action": "lead", "reason": str(error)})
            return False
        return True

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(self._settings.release_seconds):
                # Read anew: a renewal that was broken off may have reached the API server.
                lease = await self._kube.get_lease(self._settings.namespace, self._settings.name)
                if lease is not None and _holder(lease) == self._settings.identity:
                    # No holder at all, since an empty one is not valid everywhere.
                    spec = {key: value for key, value in lease["spec"].items() if key != "holderIdentity"}
                    await self._replace({**lease, "spec": spec})
        except (KubeError, TimeoutError) as error:
            _logger.warning("the lease was not released", extra={"action": "release", "reason": str(error)})

    async def _replace(self, lease: Object) -> None:
        self._see(await self._kube.replace_lease(self._settings.namespace, self._settings.name, lease))

    def _see(self, lease: Object) -> None:
        self._lease = lease
        version = lease["metadata"]["resourceVersion"]
        if version != self._version:
            # Aged by our own clock from when we saw it change: the holder's clock may be off.
            self._version, self._seen_at = version, asyncio.get_running_loop().time()

    def _held_by_another(self) -> bool:
        spec = (self._lease or {}).get("spec") or {}
        holder = _holder(self._lease or {})
        if not holder or holder == self._settings.identity:
            return False
        duration = spec.get("leaseDurationSeconds") or self._settings.duration_seconds
        return asyncio.get_running_loop().time() < self._seen_at + duration

    def _new(self) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._settings.name},
            "spec": self._spec({}),
        }

    def _spec(self, before: Object) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        ours = before.get("holderIdentity") == self._settings.identity
        return {
            **before,
            "holderIdentity": self._settings.identity,
            "leaseDurationSeconds": self._settings.duration_seconds,
            "acquireTime": before.get("acquireTime") if ours else now,
            "renewTime": now,
            "leaseTransitions": (before.get("leaseTransitions") or 0) + (0 if ours or not before else 1),
        }


def _holder(lease: Object) -> str | None:
    holder: str | None = (lease.get("spec") or {}).get("holderIdentity")
    return holder
