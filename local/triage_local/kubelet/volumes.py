"""Volumes as folders, and paths in them made real.

A process has no mount namespace of its own. Each volume is therefore a folder of this machine, and where a
value of the environment, an argument or the working directory names a path at or below a ``mountPath``, that
prefix is replaced by the folder. A path counts where it begins the value or follows one of ``:=,;("'<>`` or a
blank, so that ``file:/data/issues.json`` and ``--path=/docs`` are found. A program with a mount path built into
it is not helped.

A volume at ``/tmp`` is the exception: it hides nothing, since files that a test or a demo keeps there would
otherwise be out of reach. ``TMPDIR`` names a folder of the container's own.
"""

import base64
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from triage_local.kubelet.cluster import Cluster, Json
from triage_local.kubelet.exceptions import ClusterError, NotSupportedError, NotYetError

_SOURCES = {"configMap": "name", "secret": "secretName"}
_BEFORE = r"(?:^|(?<=[\s:=,;(\"'<>]))"
_AFTER = r"(?=$|[/\s:=,;)\"'<>])"


def check_volumes(spec: Json) -> None:
    """Refuse volumes of a kind that is not made here.

    Raises:
        NotSupportedError: With the name of the volume.
    """
    for volume in spec.get("volumes") or []:
        if not volume.keys() & {"emptyDir", "hostPath", *_SOURCES}:
            kind = ", ".join(sorted(volume.keys() - {"name"}))
            raise NotSupportedError(f'volume "{volume["name"]}" of kind {kind} is not supported')


async def make_volumes(pod: Json, folder: Path, cluster: Cluster) -> dict[str, Path]:
    """Make the folder of each volume of a pod.

    Returns:
        Real folders by the names of the volumes.

    Raises:
        NotYetError: A ConfigMap or Secret is missing.
        ClusterError: The API server did not answer.
    """
    made: dict[str, Path] = {}
    for volume in pod["spec"].get("volumes") or []:
        name = volume["name"]
        if "hostPath" in volume:
            made[name] = Path(volume["hostPath"]["path"])
            continue
        made[name] = folder / name
        made[name].mkdir(parents=True, exist_ok=True)
        for kind, key in _SOURCES.items():
            if kind in volume:
                source = volume[kind]
                object_name = source[key]
                try:
                    content = await read_data(cluster, pod["metadata"]["namespace"], kind, object_name)
                except NotYetError as error:
                    if source.get("optional"):
                        continue
                    message = f'MountVolume.SetUp failed for volume "{name}" : {error}'
                    raise NotYetError("ContainerCreating", message) from error
                _write(made[name], content, source.get("items"))
    return made


async def read_data(cluster: Cluster, namespace: str, kind: str, name: str) -> dict[str, bytes]:
    """The data of a ConfigMap or Secret.

    Args:
        cluster: The API server.
        namespace: Of the object.
        kind: ``configMap`` or ``secret``.
        name: Of the object.

    Raises:
        NotYetError: There is none; the message is the kubelet's.
    """
    try:
        found = await cluster.request("GET", f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}")
    except ClusterError as error:
        if error.status != 404:
            raise
        raise NotYetError("CreateContainerConfigError", f'{kind.lower()} "{name}" not found') from error
    texts: Mapping[str, str] = found.get("data") or {}
    if kind == "secret":
        return {key: base64.b64decode(text) for key, text in texts.items()}
    binary: Mapping[str, str] = found.get("binaryData") or {}
    return {
        **{key: text.encode() for key, text in texts.items()},
        **{key: base64.b64decode(text) for key, text in binary.items()},
    }


def _write(folder: Path, content: Mapping[str, bytes], items: list[Json] | None) -> None:
    paths = {key: key for key in content} if items is None else {item["key"]: item["path"] for item in items}
    for key, path in paths.items():
        if key not in content:
            raise NotYetError("ContainerCreating", f"references non-existent config key: {key}")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(content[key])


class Paths:
    """Replaces the paths of one container by real ones."""

    def __init__(self, real: Mapping[str, Path]) -> None:
        """Take real paths by the paths that the container would see."""
        self._real = real
        # The longest first, since one mount may lie below another.
        seen = sorted((re.escape(path) for path in real), key=len, reverse=True)
        self._pattern = re.compile(f"{_BEFORE}({'|'.join(seen)}){_AFTER}") if seen else None

    @classmethod
    def of(cls, container: Json, volumes: Mapping[str, Path], termination_log: Path) -> "Paths":
        """The mounts of a container, and the path of its termination message."""
        real = {container.get("terminationMessagePath") or "/dev/termination-log": termination_log}
        mounts: list[dict[str, Any]] = container.get("volumeMounts") or []
        for mount in mounts:
            path = mount["mountPath"].rstrip("/")
            if path not in ("", "/tmp"):
                real[path] = volumes[mount["name"]] / mount.get("subPath", "")
        return cls(real)

    def replaced(self, text: str) -> str:
        """A value with every mount path in it replaced."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: str(self._real[match[1]]), text)
