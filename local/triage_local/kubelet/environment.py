"""The environment of a container, as a kubelet makes it from a pod."""

import math
import os
import re
from collections.abc import Mapping
from typing import Any

from triage_contract.quantities import parse_quantity
from triage_local.kubelet.cluster import Cluster, Json
from triage_local.kubelet.exceptions import NotYetError
from triage_local.kubelet.volumes import read_data

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_KINDS = {"secretKeyRef": "secret", "configMapKeyRef": "configMap"}
_TITLES = {"secret": "Secret", "configMap": "ConfigMap"}


async def build_environment(
    pod: Json, container: Json, *, cluster: Cluster, capacity: Mapping[str, str]
) -> dict[str, str]:
    """What ``envFrom`` and ``env`` of a container come to.

    Args:
        pod: With ``status.podIP`` and ``spec.nodeName`` set, for ``fieldRef``.
        container: One of its containers.
        cluster: Where Secrets and ConfigMaps are read.
        capacity: The node's allocatable resources, which stand in for limits that are not set.

    Raises:
        NotYetError: A Secret, a ConfigMap or a key in one is missing.
        ClusterError: The API server did not answer.
    """
    namespace = pod["metadata"]["namespace"]
    built: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        for kind in ("configMap", "secret"):
            if (reference := source.get(f"{kind}Ref")) is not None:
                content = await _read(cluster, namespace, kind, reference)
                prefix = source.get("prefix", "")
                built |= {f"{prefix}{key}": os.fsdecode(value) for key, value in content.items()}
    for variable in container.get("env") or []:
        if (origin := variable.get("valueFrom")) is None:
            value: str | None = expand(variable.get("value", ""), built)
        else:
            value = await _value_from(origin, pod, container, cluster, capacity)
        if value is not None:
            built[variable["name"]] = value
    return built


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` where the name is known, and ``$$`` by one ``$``."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return environment.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


async def _read(cluster: Cluster, namespace: str, kind: str, reference: Json) -> dict[str, bytes]:
    try:
        return await read_data(cluster, namespace, kind, reference["name"])
    except NotYetError:
        if reference.get("optional"):
            return {}
        raise


async def _value_from(
    origin: Json, pod: Json, container: Json, cluster: Cluster, capacity: Mapping[str, str]
) -> str | None:
    if (field := origin.get("fieldRef")) is not None:
        return _field(pod, field["fieldPath"])
    if (resource := origin.get("resourceFieldRef")) is not None:
        return _resource(container, resource, capacity)
    for source, kind in _KINDS.items():
        if (reference := origin.get(source)) is not None:
            namespace = pod["metadata"]["namespace"]
            content = await _read(cluster, namespace, kind, reference)
            if reference["key"] in content:
                return os.fsdecode(content[reference["key"]])
            if reference.get("optional"):
                return None
            where = f"{_TITLES[kind]} {namespace}/{reference['name']}"
            raise NotYetError(
                "CreateContainerConfigError", f"couldn't find key {reference['key']} in {where}"
            )
    return None


def _field(pod: Json, path: str) -> str:
    if match := re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path):
        return str((pod["metadata"].get(match[1]) or {}).get(match[2], ""))
    value: Any = pod
    for key in path.split("."):
        value = value.get(key, "")
    return str(value)


def _resource(container: Json, reference: Json, capacity: Mapping[str, str]) -> str:
    kind, _, resource = reference["resource"].partition(".")
    resources = container.get("resources") or {}
    amount = (resources.get(kind) or {}).get(resource) or (capacity[resource] if kind == "limits" else "0")
    # The API server sets a divisor of "0" where none is given, and it means 1.
    divisor = parse_quantity(reference.get("divisor") or "1") or 1
    return str(math.ceil(parse_quantity(amount) / divisor))
