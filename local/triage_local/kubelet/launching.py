"""What a container of a pod is started with, and which pods can be started at all."""

from collections.abc import Mapping
from pathlib import Path

from triage_local.kubelet.cluster import Json
from triage_local.kubelet.containers import TERMINATION_LOG_VARIABLE, Launch
from triage_local.kubelet.environment import build_environment, expand
from triage_local.kubelet.exceptions import NotSupportedError
from triage_local.kubelet.images import pull
from triage_local.kubelet.machine import HOST_IP, Machine
from triage_local.kubelet.volumes import Paths, check_volumes, make_volumes


def check_supported(spec: Json) -> None:
    """Refuse what processes cannot do, or nobody here needs.

    Raises:
        NotSupportedError: With the field.
    """
    for container in (spec, *(spec.get("initContainers") or [])):
        policy = container.get("restartPolicy", "Never")
        if policy != "Never":
            raise NotSupportedError(f"restartPolicy {policy} is not supported: only Never is")
    check_volumes(spec)


async def prepare(
    pod: Json,
    container: Json,
    *,
    machine: Machine,
    folder: Path,
    capacity: Mapping[str, str],
    pod_ip: str,
    attempt: int,
) -> Launch:
    """Find the image, make the volumes and the environment.

    Args:
        pod: The pod.
        container: The one of its containers to start.
        machine: Where.
        folder: Of the pod, on disk.
        capacity: Allocatable resources of the node.
        pod_ip: Address of the pod.
        attempt: How often this was tried before.

    Raises:
        NotYetError: Something is missing that may still come.
        ClusterError: The API server did not answer.
    """
    image = pull(machine.images, container["image"], attempt)
    volumes = await make_volumes(pod, folder / "volumes", machine.cluster)
    seen = {**pod, "status": {"podIP": pod_ip, "hostIP": HOST_IP}}
    own = await build_environment(seen, container, cluster=machine.cluster, capacity=capacity)
    place = folder / "containers" / container["name"]
    scratch = place / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    termination_log = place / "termination-log"
    paths = Paths.of(container, volumes, termination_log)
    # Nothing of our own environment: a container has what its image and its pod say.
    environment = {
        "HOSTNAME": pod["metadata"]["name"],
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        **image.environment,
        TERMINATION_LOG_VARIABLE: str(termination_log),
        **{name: paths.replaced(value) for name, value in own.items()},
    }
    if container.get("command"):
        command = [*container["command"], *(container.get("args") or [])]
    else:
        command = [*image.entrypoint, *(container.get("args") or image.arguments)]
    working = container.get("workingDir")
    return Launch(
        command=tuple(paths.replaced(expand(word, environment)) for word in command),
        environment=environment,
        working_folder=Path(paths.replaced(working)) if working else image.working_folder or scratch,
        log=place / "log",
        termination_log=termination_log,
        fall_back_to_log=container.get("terminationMessagePolicy") == "FallbackToLogsOnError",
    )
