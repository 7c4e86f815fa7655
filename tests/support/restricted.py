"""The restricted standard of https://kubernetes.io/docs/concepts/security/pod-security-standards."""

from collections.abc import Iterator, Mapping
from typing import Any

_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


def breaches(spec: Mapping[str, Any]) -> list[str]:
    """Say what of a pod the standard forbids, and that a root file system can be written, which it does not."""
    return [
        *_pod(spec),
        *(breach for container in _containers(spec) for breach in _container(spec, container)),
    ]


def _containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def _pod(spec: Mapping[str, Any]) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(field):
            yield field
    for volume in spec.get("volumes", ()):
        if not volume.keys() - {"name"} <= _VOLUMES:
            yield f"volume {volume['name']}"


def _container(spec: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    name, own = container["name"], container.get("securityContext", {})
    effective = {**spec.get("securityContext", {}), **own}
    if effective.get("runAsNonRoot") is not True or effective.get("runAsUser") == 0:
        yield f"{name} may be root"
    if effective.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield f"{name} has no seccomp profile"
    if own.get("allowPrivilegeEscalation") is not False or own.get("privileged"):
        yield f"{name} may gain privileges"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", ()) or set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield f"{name} keeps capabilities"
    if own.get("readOnlyRootFilesystem") is not True:
        yield f"{name} can write to its root file system"
    if any("hostPort" in port for port in container.get("ports", ())):
        yield f"{name} has a port of its node"
