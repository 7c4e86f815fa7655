"""The facts of a pod that the table looks at, read from its JSON once."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from triage_contract.names import AGENT_CONTAINER

SKEW: Final = timedelta(seconds=5)
"""How far a node's clock may be from the API server's. A container that ended longer than this before a
disruption did not end because of it: terminal pods get evicted and deleted too."""

_START_BLOCKED: Final = frozenset(
    {
        # pkg/kubelet/images/types.go
        "ImagePullBackOff",
        "ErrImagePull",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
        # pkg/kubelet/kuberuntime/kuberuntime_container.go and pkg/kubelet/container/sync_result.go
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreStartHookError",
        "RunContainerError",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """What is seen of a pod. None: it is not said.

    ``phase``, ``reason`` and ``message`` are the pod's own. ``disruption`` is the reason of its
    ``DisruptionTarget`` condition, and ``deleted_at`` the end of a deletion's grace period; both are None
    where the agent container had ended before. ``exit_code``, ``end_reason``, ``end_message``: the agent
    container was seen terminated. ``described``: the pod has a status of any container. ``wait_reason`` and
    ``wait_message`` are those of the agent container, or of the init container that it waits for.
    """

    phase: str
    reason: str | None
    message: str | None
    disruption: str | None
    deleted_at: datetime | None
    running: bool
    exit_code: int | None
    end_reason: str | None
    end_message: str | None
    described: bool
    init_failure: str | None
    wait_reason: str | None
    wait_message: str | None
    unschedulable: str | None
    scheduled_at: datetime | None
    started_at: datetime | None

    @property
    def start_blocked(self) -> bool:
        """Whether the container waits for something that somebody has to mend."""
        return self.wait_reason in _START_BLOCKED

    @property
    def status_made_up(self) -> bool:
        """Whether a kubelet that had lost track of the container wrote its end."""
        return (self.exit_code, self.end_reason) in ((137, "ContainerStatusUnknown"), (255, "Unknown"))


def read_facts(pod: Mapping[str, Any]) -> PodFacts:
    """Read a pod."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = {item["type"]: item for item in status.get("conditions") or ()}
    init = status.get("initContainerStatuses") or ()
    containers = status.get("containerStatuses") or ()
    state = next((_state(item) for item in containers if item["name"] == AGENT_CONTAINER), {})
    ended: Mapping[str, Any] = state.get("terminated") or {}
    running: Mapping[str, Any] = state.get("running") or {}
    waiting = _first_waiting(init) or state.get("waiting") or {}
    finished_at = _time(ended.get("finishedAt"))
    disruption = conditions.get("DisruptionTarget", {})
    scheduled = conditions.get("PodScheduled", {})
    deleted_at, asked_at = _deletion(metadata)
    if _is_true(disruption) and _before(finished_at, _time(disruption.get("lastTransitionTime"))):
        disruption = {}
    return PodFacts(
        phase=status.get("phase") or "Pending",
        reason=status.get("reason") or None,
        message=status.get("message") or None,
        disruption=disruption.get("reason") if _is_true(disruption) else None,
        deleted_at=None if _before(finished_at, asked_at) else deleted_at,
        running=state.get("running") is not None,
        exit_code=ended.get("exitCode"),
        end_reason=ended.get("reason") or None,
        end_message=ended.get("message") or None,
        described=bool(containers or init),
        init_failure=_init_failure(init),
        wait_reason=waiting.get("reason"),
        wait_message=waiting.get("message"),
        unschedulable=(scheduled.get("message") or "") if scheduled.get("status") == "False" else None,
        scheduled_at=_time(scheduled.get("lastTransitionTime")) if _is_true(scheduled) else None,
        started_at=_time(running.get("startedAt") or ended.get("startedAt")),
    )


def _state(container: Mapping[str, Any]) -> Mapping[str, Any]:
    return container.get("state") or {}


def _first_waiting(containers: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Give why the first init container that cannot start waits; the others wait for it, and do not say so."""
    waiting = (_state(item).get("waiting") or {} for item in containers)
    return next((item for item in waiting if item.get("reason") in _START_BLOCKED), None)


def _init_failure(containers: Iterable[Mapping[str, Any]]) -> str | None:
    for item in containers:
        code = (_state(item).get("terminated") or {}).get("exitCode", 0)
        if code != 0:
            return f"init container {item['name']} ended with exit code {code}"
    return None


def _deletion(metadata: Mapping[str, Any]) -> tuple[datetime | None, datetime | None]:
    """Give when a deletion's grace period ends (``deletionTimestamp``), and when the deletion was asked for."""
    ends_at = _time(metadata.get("deletionTimestamp"))
    if ends_at is None:
        return None, None
    return ends_at, ends_at - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)


def _before(ended_at: datetime | None, disrupted_at: datetime | None) -> bool:
    return ended_at is not None and disrupted_at is not None and ended_at + SKEW < disrupted_at


def _is_true(condition: Mapping[str, Any]) -> bool:
    return condition.get("status") == "True"


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
