"""Pods as an API server shows them, in the words of a kubelet."""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from support.clock import NOW, ago, stamp
from triage_contract.names import Label

GRACE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class PodBuilder:
    """A pod to be; each method gives another one, that of the name happened to."""

    json: dict[str, Any] = field(default_factory=dict)

    def _with(self, *path_and_value: Any) -> "PodBuilder":
        *path, value = path_and_value
        json = deepcopy(self.json)
        holder = json
        for key in path[:-1]:
            holder = holder.setdefault(key, {})
        holder[path[-1]] = value
        return PodBuilder(json=json)

    def _status(self, **fields: Any) -> "PodBuilder":
        return self._with("status", {**self.json["status"], **fields})

    def _condition(self, kind: str, at: datetime, **fields: Any) -> "PodBuilder":
        others = [item for item in self.json["status"].get("conditions", []) if item["type"] != kind]
        return self._status(
            conditions=[*others, {"type": kind, "lastTransitionTime": stamp(at), **fields}],
        )

    def _agent(self, state: dict[str, Any]) -> "PodBuilder":
        others = [
            item for item in self.json["status"].get("containerStatuses", []) if item["name"] != "agent"
        ]
        return self._status(containerStatuses=[{"name": "agent", "state": state}, *others])

    def scheduled(self, at: datetime = NOW) -> "PodBuilder":
        return self._condition("PodScheduled", at, status="True")._with("spec", "nodeName", "node-a")

    def unschedulable(self, message: str = "0/2 nodes are available") -> "PodBuilder":
        return self._condition("PodScheduled", NOW, status="False", reason="Unschedulable", message=message)

    def waiting(self, reason: str = "ContainerCreating", message: str | None = None) -> "PodBuilder":
        return self._agent({"waiting": {"reason": reason, **({"message": message} if message else {})}})

    def running(self, since: datetime | None = None) -> "PodBuilder":
        running = self.scheduled(since or ago(60))._status(phase="Running")
        return running._agent({"running": {"startedAt": stamp(since or ago(60))}})

    def exited(
        self, code: int, reason: str | None = None, message: str | None = None, at: datetime = NOW
    ) -> "PodBuilder":
        state = {
            "exitCode": code,
            "reason": reason or ("Error" if code else "Completed"),
            "finishedAt": stamp(at),
        }
        ended = self.running()._agent({"terminated": {**state, **({"message": message} if message else {})}})
        return ended._status(phase="Failed" if code else "Succeeded")

    def oom_killed(self) -> "PodBuilder":
        return self.exited(137, "OOMKilled")

    def with_sidecar(self) -> "PodBuilder":
        """Add a container that runs on after the agent's."""
        statuses = [*self.json["status"]["containerStatuses"], {"name": "proxy", "state": {"running": {}}}]
        return self._status(containerStatuses=statuses, phase="Running")

    def with_init(self, **state: Any) -> "PodBuilder":
        return self._status(initContainerStatuses=[{"name": "fetch", "state": state}])

    def failed(self, reason: str, message: str = "") -> "PodBuilder":
        """Have the control plane or the kubelet fail the pod, whatever its containers do."""
        return self._status(phase="Failed", reason=reason, message=message)

    def disrupted(self, reason: str, at: datetime = NOW) -> "PodBuilder":
        return self._condition("DisruptionTarget", at, status="True", reason=reason)

    def deleted(self, at: datetime = NOW, grace_seconds: int = GRACE_SECONDS) -> "PodBuilder":
        deletion = stamp(at + timedelta(seconds=grace_seconds))
        return self._with("metadata", "deletionTimestamp", deletion)._with(
            "metadata", "deletionGracePeriodSeconds", grace_seconds
        )

    def evicted(self, at: datetime = NOW) -> "PodBuilder":
        """Drain its node, as the eviction API does it."""
        return self.disrupted("EvictionByEvictionAPI", at).deleted(at)

    def with_memory(self, asked: str, given: str | None, request: str | None = None) -> "PodBuilder":
        """Ask for a memory limit, of which the node says that it has given another; None: it says nothing."""
        resources = {
            "limits": {"memory": asked},
            **({"requests": {"memory": request}} if request else {}),
        }
        asking = self._with("spec", "containers", [{"name": "agent", "resources": resources}])
        if given is None:
            return asking
        statuses = [
            {**item, "resources": {"limits": {"memory": given}}} if item["name"] == "agent" else item
            for item in self.json["status"]["containerStatuses"]
        ]
        return asking._status(containerStatuses=statuses)

    def resize_pending(self, reason: str, message: str) -> "PodBuilder":
        return self._condition("PodResizePending", NOW, status="True", reason=reason, message=message)

    def resize_in_progress(self, **failure: str) -> "PodBuilder":
        return self._condition("PodResizeInProgress", NOW, status="True", **failure)

    def tolerating(self, **toleration: Any) -> "PodBuilder":
        return self._with("spec", "tolerations", [toleration])

    def of_revision(self, revision: str) -> "PodBuilder":
        return self._with("metadata", "labels", {Label.REVISION.value: revision})

    def numbered(self, epoch: int) -> "PodBuilder":
        named = self._with("metadata", "name", f"run-a{epoch}")
        return named._with("metadata", "uid", f"pod-uid-{epoch}")


def a_pod() -> PodBuilder:
    """A pod that was just created."""
    return PodBuilder(json={"metadata": {}, "spec": {}, "status": {"phase": "Pending"}}).numbered(1)
