"""Memory of a running pod: what is asked for it, what its node has given, and how to ask for more. Pure.

By KEP-1287, in the words of a kubelet of 1.34. One older than 1.33 does not say what it has given.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from triage_contract.names import AGENT_CONTAINER
from triage_contract.quantities import format_memory, parse_memory
from triage_operator.snapshot import Pod

_PENDING: Final = "PodResizePending"
_IN_PROGRESS: Final = "PodResizeInProgress"
_INFEASIBLE: Final = "Infeasible"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMemory:
    """The memory limit of a pod's agent container, in bytes.

    ``given_bytes`` is what its node keeps it to; None: the node does not say, or it does not run. ``obstacle`` is why
    the node has not given what is asked so far, in its words; empty: it does not say. ``is_infeasible``: it never
    will. ``is_accepted``: it is about to.
    """

    asked_bytes: int
    given_bytes: int | None
    obstacle: str
    is_infeasible: bool
    is_accepted: bool


def read_memory(pod: Pod) -> PodMemory | None:
    """Read a pod; None: its agent container has no memory limit."""
    asked = _limit(_agent(pod["spec"].get("containers")))
    if asked is None:
        return None
    status = pod.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    pending, progress = conditions.get(_PENDING, {}), conditions.get(_IN_PROGRESS, {})
    container = _agent(status.get("containerStatuses"))
    # A kubelet goes on with the resize of a container that was killed before it got anything.
    is_running = "running" in (container.get("state") or {})
    why = pending or progress
    return PodMemory(
        asked_bytes=asked,
        given_bytes=_limit(container) if is_running else None,
        obstacle=": ".join(part for part in (why.get("reason"), why.get("message")) if part),
        is_infeasible=pending.get("reason") == _INFEASIBLE,
        # One that failed says why, and is tried again.
        is_accepted=bool(progress) and not why.get("reason"),
    )


def raised_beyond(pod: Pod, limit_bytes: int | None) -> int | None:
    """Give the memory limit in bytes that a pod was given, if that is higher than one that it had; None: it is not."""
    memory = read_memory(pod)
    given = None if memory is None else memory.given_bytes
    return given if given is not None and limit_bytes is not None and given > limit_bytes else None


def build_resize(pod: Pod, limit_bytes: int) -> dict[str, Any]:
    """Build the strategic merge patch of ``pods/resize`` that asks for a memory limit.

    The request grows by the same factor, so that the pod keeps its quality of service, which may not change.
    """
    resources = _agent(pod["spec"]["containers"])["resources"]
    asked: dict[str, Any] = {"limits": {"memory": format_memory(limit_bytes)}}
    request = (resources.get("requests") or {}).get("memory")
    if request is not None:
        raised = parse_memory(request) * limit_bytes // parse_memory(resources["limits"]["memory"])
        asked["requests"] = {"memory": format_memory(raised)}
    return {
        "metadata": {"uid": pod["metadata"]["uid"]},
        "spec": {"containers": [{"name": AGENT_CONTAINER, "resources": asked}]},
    }


def _agent(containers: Any) -> Mapping[str, Any]:
    return next((each for each in containers or () if each["name"] == AGENT_CONTAINER), {})


def _limit(container: Mapping[str, Any]) -> int | None:
    text = ((container.get("resources") or {}).get("limits") or {}).get("memory")
    # Kubernetes takes a limit of 0 for none.
    return (parse_memory(text) or None) if text is not None else None
