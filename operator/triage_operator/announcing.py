"""Events about runs: built here, recorded in the background, since nobody waits for them."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from triage_contract.api import TriageRun
from triage_contract.names import API_VERSION, MANAGER
from triage_operator.exceptions import KubeError
from triage_operator.kube import Kube
from triage_operator.reasons import Reason

MAX_MESSAGE: Final = 1024
"""Characters that the API server takes in an Event's message."""

BACKLOG: Final = 1000
"""Events that wait to be recorded; beyond that, the oldest is dropped."""

WARNINGS: Final = frozenset(Reason) - {
    Reason.STARTING,
    Reason.RUNNING,
    Reason.PENDING,
    Reason.QUEUED,
    Reason.SUSPENDED,
    Reason.HANDING_OFF,
    Reason.HANDED_OFF,
    Reason.RESUMING,
    Reason.REPAIRED,
    Reason.BACKING_OFF,
    Reason.COMPLETED,
    Reason.CANCELLED,
    Reason.CLEANING_UP,
    Reason.EXPIRED,
}
"""Reasons that somebody may want to do something about; the others are the ordinary course."""

UNANNOUNCED: Final = frozenset({Reason.PENDING, Reason.RUNNING, Reason.HANDING_OFF})
"""Reasons to wait that follow from an action which was announced itself."""

_logger = logging.getLogger(__name__)


class Announcer:
    """Records Events, in order, at the pace of the API server."""

    def __init__(self, kube: Kube, *, identity: str) -> None:
        self._kube = kube
        self._identity = identity
        self._events: asyncio.Queue[tuple[str, Mapping[str, Any]]] = asyncio.Queue(BACKLOG)

    def announce(self, run: TriageRun, *, action: str, reason: Reason, message: str) -> None:
        """Have an Event recorded about a run."""
        if self._events.full():
            self._events.get_nowait()
        event = build_event(
            run, action=action, reason=reason, message=message, identity=self._identity, now=datetime.now(UTC)
        )
        self._events.put_nowait((run.metadata.namespace, event))

    async def work(self) -> None:
        """Record Events until cancelled."""
        while True:
            namespace, event = await self._events.get()
            try:
                await self._kube.create_event(namespace, event)
            except KubeError as error:
                _logger.warning(
                    "an event was not recorded",
                    extra={"action": "announce", "namespace": namespace, "reason": str(error)},
                )


def build_event(
    run: TriageRun, *, action: str, reason: Reason, message: str, identity: str, now: datetime
) -> dict[str, Any]:
    """Build an Event about a run."""
    metadata = run.metadata
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": metadata.namespace, "generateName": f"{metadata.name[:240]}."},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": "TriageRun",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
        },
        "type": "Warning" if reason in WARNINGS else "Normal",
        "reason": reason,
        "action": action,
        "message": message[:MAX_MESSAGE],
        "source": {"component": MANAGER},
        "reportingComponent": MANAGER,
        "reportingInstance": identity[:128],
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
