"""Columns of the tables that kubectl prints, per resource."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from triage_local.apiserver.objects import Json, metadata, name_of, parsed_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column. ``priority`` above 0: shown with ``-o wide`` only."""

    name: str
    cell: Callable[[Json], Any]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0

    def definition(self) -> Json:
        """The column as a ``TableColumnDefinition``."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def age(text: str | None, now: datetime | None = None) -> str:
    """How long before ``now`` (None: this moment) a time was, as kubectl abbreviates it.

    The steps are those of k8s.io/apimachinery/pkg/util/duration.
    """
    if not text:
        return "<unknown>"
    seconds = int(((now or datetime.now(UTC)) - parsed_time(text)).total_seconds())
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def _at(obj: Json, *steps: str) -> Any:
    value: Any = obj
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _field(*steps: str, absent: str = "<none>") -> Callable[[Json], str]:
    return lambda obj: str(_at(obj, *steps) or absent)


def _age_of(*steps: str) -> Callable[[Json], str]:
    return lambda obj: age(_at(obj, *steps))


NAME: Final = Column(
    name="Name", format="name", cell=name_of, description="Name must be unique within a namespace."
)
AGE: Final = Column(name="Age", cell=lambda obj: age(metadata(obj).get("creationTimestamp")))
NAME_AND_AGE: Final = (NAME, AGE)

CONFIG_MAPS: Final = (
    NAME,
    Column(name="Data", cell=lambda obj: str(len(obj.get("data") or {}) + len(obj.get("binaryData") or {}))),
    AGE,
)
SECRETS: Final = (
    NAME,
    Column(name="Type", cell=_field("type", absent="Opaque")),
    Column(name="Data", cell=lambda obj: str(len(obj.get("data") or {}))),
    AGE,
)
NAMESPACES: Final = (NAME, Column(name="Status", cell=_field("status", "phase", absent="")), AGE)
LEASES: Final = (NAME, Column(name="Holder", cell=_field("spec", "holderIdentity", absent="")), AGE)
DEFINITIONS: Final = (
    NAME,
    Column(name="Created At", cell=lambda obj: metadata(obj).get("creationTimestamp"), format="date-time"),
)
EVENTS: Final = (
    Column(name="Last Seen", cell=lambda obj: age(_last_seen(obj))),
    Column(name="Type", cell=_field("type", absent="")),
    Column(name="Reason", cell=_field("reason", absent="")),
    Column(
        name="Object",
        cell=lambda obj: (
            f"{str(_at(obj, 'involvedObject', 'kind')).lower()}/{_at(obj, 'involvedObject', 'name')}"
        ),
    ),
    Column(name="Subobject", cell=_field("involvedObject", "fieldPath", absent=""), priority=1),
    Column(
        name="Source",
        cell=lambda obj: obj.get("reportingComponent") or _at(obj, "source", "component") or "",
        priority=1,
    ),
    Column(name="Message", cell=lambda obj: str(obj.get("message") or "").strip()),
    Column(
        name="First Seen", cell=lambda obj: age(obj.get("firstTimestamp") or obj.get("eventTime")), priority=1
    ),
    Column(
        name="Count", cell=lambda obj: str(_at(obj, "series", "count") or obj.get("count") or 1), priority=1
    ),
    Column(name="Name", format="name", cell=name_of, priority=1),
)


def _last_seen(obj: Json) -> str | None:
    series = _at(obj, "series", "lastObservedTime")
    return (
        series or obj.get("lastTimestamp") or obj.get("eventTime") or metadata(obj).get("creationTimestamp")
    )


def _node_status(obj: Json) -> str:
    ready = [c for c in _at(obj, "status", "conditions") or [] if c.get("type") == "Ready"]
    words = [("Ready" if ready[0].get("status") == "True" else "NotReady") if ready else "Unknown"]
    if _at(obj, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(obj: Json) -> str:
    prefix = "node-role.kubernetes.io/"
    roles = [key.removeprefix(prefix) for key in metadata(obj).get("labels") or {} if key.startswith(prefix)]
    return ",".join(sorted(roles)) or "<none>"


def _node_address(kind: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        found = [a.get("address") for a in _at(obj, "status", "addresses") or [] if a.get("type") == kind]
        return str(found[0]) if found else "<none>"

    return cell


NODES: Final = (
    NAME,
    Column(name="Status", cell=_node_status),
    Column(name="Roles", cell=_node_roles),
    AGE,
    Column(name="Version", cell=_field("status", "nodeInfo", "kubeletVersion", absent="")),
    Column(name="Internal-IP", cell=_node_address("InternalIP"), priority=1),
    Column(name="External-IP", cell=_node_address("ExternalIP"), priority=1),
    Column(name="OS-Image", cell=_field("status", "nodeInfo", "osImage", absent="<unknown>"), priority=1),
    Column(
        name="Kernel-Version",
        cell=_field("status", "nodeInfo", "kernelVersion", absent="<unknown>"),
        priority=1,
    ),
    Column(
        name="Container-Runtime",
        cell=_field("status", "nodeInfo", "containerRuntimeVersion", absent="<unknown>"),
        priority=1,
    ),
)


def _pod_ready(obj: Json) -> str:
    statuses = _at(obj, "status", "containerStatuses") or []
    ready = sum(bool(status.get("ready")) for status in statuses)
    return f"{ready}/{len(_at(obj, 'spec', 'containers') or [])}"


def _pod_restarts(obj: Json) -> str:
    return str(sum(int(s.get("restartCount") or 0) for s in _at(obj, "status", "containerStatuses") or []))


def _pod_status(obj: Json) -> str:
    """The word of ``printPod`` in pkg/printers/internalversion for a pod without init containers."""
    status = obj.get("status") or {}
    word = status.get("reason") or status.get("phase") or ""
    running = False
    for container in reversed(status.get("containerStatuses") or []):
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting") or {}, state.get("terminated")
        if waiting.get("reason"):
            word = waiting["reason"]
        elif terminated is not None:
            word = terminated.get("reason") or (
                f"Signal:{terminated['signal']}"
                if terminated.get("signal")
                else f"ExitCode:{terminated.get('exitCode', 0)}"
            )
        elif container.get("ready") and "running" in state:
            running = True
    if word == "Completed" and running:
        word = "Running"
    if metadata(obj).get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(word)


PODS: Final = (
    NAME,
    Column(name="Ready", cell=_pod_ready),
    Column(name="Status", cell=_pod_status),
    Column(name="Restarts", cell=_pod_restarts),
    AGE,
    Column(name="IP", cell=_field("status", "podIP"), priority=1),
    Column(name="Node", cell=_field("spec", "nodeName"), priority=1),
    Column(name="Nominated Node", cell=_field("status", "nominatedNodeName"), priority=1),
    Column(name="Readiness Gates", cell=lambda obj: "<none>", priority=1),
)
