"""Events about runs: built here, recorded in the background, since nobody waits for them."""

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from triage_contract.api import TriageRun
from triage_contract.names import API_VERSION, MANAGER
from triage_contract.states import Outcome
from triage_operator.actions import Action, ConfirmDeath, DeleteRun, EndAttempt, FillCause, Wait
from triage_operator.exceptions import KubeConflictError, KubeError
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
    Reason.RAISING_MEMORY,
    Reason.OUTDATED,
    Reason.HANDING_OFF,
    Reason.HANDED_OFF,
    Reason.RESUMING,
    Reason.REPAIRED,
    Reason.BACKING_OFF,
    Reason.COMPLETED,
    Reason.CANCELLED,
    Reason.DECIDED,
    Reason.CLEANING_UP,
    Reason.EXPIRED,
}
"""Reasons that somebody may want to do something about; the others are the ordinary course."""

_FOLLOWING: Final = frozenset(
    {Reason.LOST, Reason.PENDING, Reason.RUNNING, Reason.REPAIRED, Reason.OUTDATED, Reason.HANDING_OFF}
)
"""Reasons to wait that follow from what was announced itself."""

_LEADING: Final = frozenset({Outcome.FINISHED, Outcome.WAITING, Outcome.IN_DOUBT})
"""Outcomes of attempts that are announced with what follows for the run."""

_TOLD: Final = 10_000
"""Names of Events that are remembered, so that an API server is not asked at each pass whether it has them."""

_logger = logging.getLogger(__name__)


class Announcer:
    """Records Events, in order, at the pace of the API server."""

    def __init__(self, kube: Kube, *, identity: str) -> None:
        self._kube = kube
        self._identity = identity
        self._told: dict[tuple[str, str], None] = {}
        self._events: asyncio.Queue[tuple[str, Mapping[str, Any]]] = asyncio.Queue(BACKLOG)

    def announce(
        self, run: TriageRun, *, action: str, reason: Reason, message: str, once: str | None = None
    ) -> None:
        """Have an Event recorded about a run. ``once`` names what is to be told a single time, whoever tells it."""
        if once is not None:
            key = (run.metadata.uid, once)
            if key in self._told:
                return
            self._told[key] = None
            if len(self._told) > _TOLD:
                del self._told[next(iter(self._told))]
        if self._events.full():
            self._events.get_nowait()
        event = build_event(
            run,
            action=action,
            reason=reason,
            message=message,
            identity=self._identity,
            now=datetime.now(UTC),
            once=once,
        )
        self._events.put_nowait((run.metadata.namespace, event))

    async def work(self) -> None:
        """Record Events until cancelled."""
        while True:
            namespace, event = await self._events.get()
            try:
                await self._kube.create_event(namespace, event)
            except KubeConflictError:
                # One that is to be told once has a name of its own: it stands already, or its namespace goes.
                continue
            except KubeError as error:
                _logger.warning(
                    "an event was not recorded",
                    extra={"action": "announce", "namespace": namespace, "reason": str(error)},
                )


def is_announced(action: Action, *, is_news: bool) -> bool:
    """Say whether an Event tells of an action; ``is_news``: it gives another reason than the status did before."""
    match action:
        case Wait():
            return is_news and action.reason not in _FOLLOWING
        case EndAttempt():
            return action.outcome not in _LEADING
        case FillCause() | ConfirmDeath() | DeleteRun():
            return False
    return True


def build_event(
    run: TriageRun,
    *,
    action: str,
    reason: Reason,
    message: str,
    identity: str,
    now: datetime,
    once: str | None = None,
) -> dict[str, Any]:
    """Build an Event about a run, of a name that the API server makes up, or of one that ``once`` settles."""
    metadata = run.metadata
    name = {"generateName": f"{metadata.name[:240]}."}
    if once is not None:
        digest = hashlib.sha256(f"{metadata.uid} {once}".encode()).hexdigest()[:12]
        name = {"name": f"{metadata.name[:240]}.{digest}"}
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": metadata.namespace, **name},
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
