"""The sizes of a pod's containers: asked for, set aside on the node, and given.

As the allocation manager of a kubelet of 1.34 does it, for memory.
"""

from collections.abc import Callable, Mapping

from triage_contract.quantities import parse_memory
from triage_local.kubelet.cluster import Json
from triage_local.kubelet.scheduling import requested_bytes

PENDING = "PodResizePending"
IN_PROGRESS = "PodResizeInProgress"


class Sizes:
    """What the containers of one pod have, by their names."""

    def __init__(self, pod: Json, capacity: Mapping[str, str], others: Callable[[], int]) -> None:
        """Set aside what the pod comes with.

        Args:
            pod: As it is when its node sees it first.
            capacity: Allocatable resources of the node.
            others: Gives the bytes of memory that are set aside for the node's other pods.
        """
        self.allocated = self.given = _resources(pod)
        """What is set aside, and what is enforced."""
        self.condition: Json | None = None
        """What the pod's status says of the resize that it asks for; None: it has what it asks for."""
        self.requested = requested_bytes(pod)
        """Bytes of memory set aside for the pod."""
        self._capacity = capacity
        self._others = others

    def ask(self, pod: Json) -> bool:
        """Set aside what the pod asks for now, if there is room; say whether it is to be given now."""
        asked = _resources(pod)
        if asked == self.allocated:
            if self.condition is not None and self.condition["type"] == PENDING:
                self.condition = None
            return False
        wanted, used = requested_bytes(pod), self._others()
        capacity = parse_memory(self._capacity["memory"])
        if wanted > capacity:
            message = f"Node didn't have enough capacity: memory, requested: {wanted}, capacity: {capacity}"
            self.condition = _condition(pod, PENDING, reason="Infeasible", message=message)
            return False
        if wanted + used > capacity:
            message = (
                f"Node didn't have enough resource: memory, requested: {wanted}, used: {used},"
                f" capacity: {capacity}"
            )
            self.condition = _condition(pod, PENDING, reason="Deferred", message=message)
            return False
        self.allocated, self.requested = asked, wanted
        self.condition = _condition(pod, IN_PROGRESS)
        return True

    def give(self) -> None:
        """Say that the containers have what is set aside for them."""
        self.given = self.allocated
        if self.condition is not None and self.condition["type"] == IN_PROGRESS:
            self.condition = None


def _resources(pod: Json) -> dict[str, Json]:
    spec = pod["spec"]
    containers = (*spec["containers"], *(spec.get("initContainers") or ()))
    return {container["name"]: container.get("resources") or {} for container in containers}


def _condition(pod: Json, kind: str, **why: str) -> Json:
    generation = pod["metadata"].get("generation")
    return {"type": kind, "status": "True", "observedGeneration": generation, **why}
