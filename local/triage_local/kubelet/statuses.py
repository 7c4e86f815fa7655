"""The status of a pod, from the states of its containers: pure functions.

After https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/ and what a kubelet of 1.34 was seen to
report.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from triage_local.kubelet.cluster import Json
from triage_local.kubelet.resizing import IN_PROGRESS, PENDING, Sizes

_CONTAINER_CREATING: Json = {"waiting": {"reason": "ContainerCreating"}}
_POD_INITIALIZING: Json = {"waiting": {"reason": "PodInitializing"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """What the kubelet knows of a pod on its node."""

    host_ip: str
    pod_ip: str
    start_time: str
    init_states: Mapping[str, Json]
    """States of the init containers by name; one that is not here waits."""
    states: Mapping[str, Json]
    container_ids: Mapping[str, str]
    sizes: Sizes
    failure: tuple[str, str] | None = None
    """Reason and message of a pod that the kubelet refuses as a whole."""


def stamp(moment: datetime) -> str:
    """A time as Kubernetes writes it, in whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def waiting(reason: str, message: str) -> Json:
    """State of a container that has no process yet."""
    return {"waiting": {"reason": reason, "message": message}}


def running(started: datetime) -> Json:
    """State of a container whose process lives."""
    return {"running": {"startedAt": stamp(started)}}


def terminated(
    *,
    exit_code: int,
    reason: str,
    started: datetime | None = None,
    finished: datetime | None = None,
    message: str = "",
    container_id: str = "",
) -> Json:
    """State of a container whose process has ended, or never was: then its times are the epoch."""
    epoch = datetime.fromtimestamp(0, UTC)
    state: Json = {
        "exitCode": exit_code,
        "reason": reason,
        "startedAt": stamp(started or epoch),
        "finishedAt": stamp(finished or epoch),
    }
    if message:
        state["message"] = message
    if container_id:
        state["containerID"] = container_id
    return {"terminated": state}


def build_status(pod: Json, facts: PodFacts, previous: Json, now: datetime) -> Json:
    """The whole status, to be merged into the pod's.

    Args:
        pod: The pod, of which only the specification counts.
        facts: What the node knows.
        previous: What was built before: the transition times of unchanged conditions are kept. Conditions of
            others, such as ``DisruptionTarget``, are not in either, and the merge leaves them alone.
        now: Time of whatever changed.
    """
    spec = pod["spec"]
    first = _POD_INITIALIZING if spec.get("initContainers") else _CONTAINER_CREATING
    init = [
        _container_status(container, facts, facts.init_states.get(container["name"], first), init=True)
        for container in spec.get("initContainers") or []
    ]
    main = [
        _container_status(container, facts, facts.states.get(container["name"], first))
        for container in spec["containers"]
    ]
    phase = "Failed" if facts.failure else _phase(init, main)
    status: Json = {
        "phase": phase,
        "conditions": [
            *_conditions(phase, init, main, previous, stamp(now)),
            *_resize_conditions(facts.sizes.condition, previous, stamp(now)),
        ],
        "hostIP": facts.host_ip,
        "hostIPs": [{"ip": facts.host_ip}],
        "podIP": facts.pod_ip,
        "podIPs": [{"ip": facts.pod_ip}],
        "startTime": facts.start_time,
    }
    if facts.failure:
        status["reason"], status["message"] = facts.failure
        return status
    if init:
        status["initContainerStatuses"] = init
    status["containerStatuses"] = main
    return status


def _container_status(container: Json, facts: PodFacts, state: Json, *, init: bool = False) -> Json:
    name = container["name"]
    up = "running" in state
    status: Json = {
        "name": name,
        "state": state,
        "lastState": {},
        "ready": _exit_code(state) == 0 if init else up,
        "started": up,
        "restartCount": 0,
        "image": container["image"],
        "imageID": container["image"] if "waiting" not in state else "",
    }
    if resources := facts.sizes.given[name]:
        status["resources"] = resources
    if allocated := facts.sizes.allocated[name].get("requests"):
        status["allocatedResources"] = allocated
    if container_id := facts.container_ids.get(name):
        status["containerID"] = container_id
    return status


def _exit_code(state: Json) -> int | None:
    code: int | None = state.get("terminated", {}).get("exitCode")
    return code


def _phase(init: list[Json], main: list[Json]) -> str:
    init_codes = [_exit_code(status["state"]) for status in init]
    codes = [_exit_code(status["state"]) for status in main]
    if any(code not in (None, 0) for code in init_codes):
        return "Failed"
    if any("waiting" in status["state"] for status in main):
        return "Pending"
    if None in codes:
        return "Running"
    return "Failed" if any(codes) else "Succeeded"


def _conditions(phase: str, init: list[Json], main: list[Json], previous: Json, now: str) -> list[Json]:
    unready = [status["name"] for status in main if not status["ready"]]
    incomplete = [status["name"] for status in init if not status["ready"]]
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase)
    sandboxed = over is None and any("waiting" not in status["state"] for status in (*init, *main))
    if over:
        ready: dict[str, Any] = {"status": "False", "reason": over}
    elif unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        ready = {"status": "False", "reason": "ContainersNotReady", "message": message}
    else:
        ready = {"status": "True"}
    if incomplete:
        message = f"containers with incomplete status: [{' '.join(incomplete)}]"
        initialized = {"status": "False", "reason": "ContainersNotInitialized", "message": message}
    else:
        initialized = {"status": "True"}
    conditions = {
        "PodReadyToStartContainers": {"status": str(sandboxed)},
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": {"status": "True"},
    }
    before = {condition["type"]: condition for condition in previous.get("conditions", [])}
    built = []
    for kind, condition in conditions.items():
        old = before.get(kind, {})
        since = old["lastTransitionTime"] if old.get("status") == condition["status"] else now
        # A merge keeps what is left out: what does not hold has to be said to be null.
        blank = {"reason": None, "message": None}
        built.append({"type": kind, "lastTransitionTime": since, **blank, **condition})
    return built


def _resize_conditions(resize: Json | None, previous: Json, now: str) -> Iterator[Json]:
    before = {condition["type"]: condition for condition in previous.get("conditions", [])}
    for kind in (PENDING, IN_PROGRESS):
        old = before.get(kind, {})
        if resize is not None and resize["type"] == kind:
            since = old.get("lastTransitionTime", now)
            yield {"reason": None, "message": None, "lastTransitionTime": since, **resize}
        elif "status" in old:
            # These have no status but True: where they do not hold, they are not there.
            yield {"type": kind, "$patch": "delete"}
