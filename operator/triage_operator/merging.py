"""Merging a TriageAgent's ``podTemplate`` into the pod that the operator builds.

As a strategic merge patch does it: objects key by key, the lists below item by item, all else replaced, null
removes.
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from triage_contract.names import AGENT_CONTAINER
from triage_operator.exceptions import PodTemplateError

_PATH: Final = "spec.podTemplate.spec"

# The patchMergeKey of each list, from k8s.io/api/core/v1.
_MERGE_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}

_OURS: Final = {
    "image": "use spec.image",
    "command": "use spec.app",
    "args": "use spec.app",
    "resources": "use spec.resources, which memory growth goes by",
    "restartPolicy": "the operator makes another pod instead",
    "terminationMessagePath": "the operator reads the default one",
    "terminationMessagePolicy": "the operator sets it",
}
"""Fields of the agent container that make an attempt what the database says it is, and what to do instead."""

_OUR_VARIABLES: Final = "TRIAGE_"


def merge_template(spec: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a template's PodSpec into ours.

    Raises:
        PodTemplateError: it has another shape than a PodSpec, or sets what is the operator's.
    """
    _check_ours(spec, template)
    merged = _merge(spec, template, _PATH)
    assert isinstance(merged, dict)
    return merged


def _check_ours(spec: Mapping[str, Any], template: Mapping[str, Any]) -> None:
    if template.get("restartPolicy", "Never") != "Never":
        raise PodTemplateError(
            f"{_PATH}.restartPolicy: must be Never, the operator makes another pod instead"
        )
    for container in _items(template, "containers", _PATH):
        if container["name"] != AGENT_CONTAINER:
            continue
        path = f"{_PATH}.containers[{AGENT_CONTAINER}]"
        ours = spec["containers"][0]
        for field, advice in _OURS.items():
            if field in container and container[field] != ours.get(field):
                raise PodTemplateError(f"{path}.{field}: is the operator's; {advice}")
        for variable in _items(container, "env", path):
            if variable["name"].startswith(_OUR_VARIABLES):
                raise PodTemplateError(f"{path}.env[{variable['name']}]: is the operator's")


def _merge(ours: Any, theirs: Any, path: str) -> Any:
    if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
        return deepcopy(theirs)
    merged = dict(ours)
    for field, value in theirs.items():
        if field.startswith("$"):
            raise PodTemplateError(f"{path}.{field}: directives are not supported; null removes a field")
        if value is None:
            merged.pop(field, None)
        elif (key := _MERGE_KEYS.get(field)) is not None:
            merged[field] = _merge_items(
                _items(ours, field, path, key), _items(theirs, field, path, key), key, path
            )
        else:
            merged[field] = _merge(ours.get(field), value, f"{path}.{field}")
    return merged


def _merge_items(
    ours: list[Mapping[str, Any]], theirs: list[Mapping[str, Any]], key: str, path: str
) -> list[Any]:
    merged: dict[Any, Any] = {item[key]: item for item in ours}
    for item in theirs:
        merged[item[key]] = _merge(merged.get(item[key]), item, f"{path}[{item[key]}]")
    return list(merged.values())


def _items(holder: Mapping[str, Any], field: str, path: str, key: str = "name") -> list[Mapping[str, Any]]:
    """Give the items of a list; each is an object with its merge key."""
    items = holder.get(field) or []
    if not isinstance(items, list):
        raise PodTemplateError(f"{path}.{field}: must be a list")
    for index, item in enumerate(items):
        if not isinstance(item, Mapping) or not isinstance(item.get(key), str | int):
            raise PodTemplateError(f"{path}.{field}[{index}]: must be an object with {key}")
    return items
