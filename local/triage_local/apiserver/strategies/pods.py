"""Pods: defaults, what may change once a pod exists, quality of service, graceful deletion."""

import re
from typing import Any, Final

from triage_local.apiserver.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    required,
    unsupported,
)
from triage_local.apiserver.naming import label_errors
from triage_local.apiserver.objects import Json
from triage_local.apiserver.quantities import amount
from triage_local.apiserver.strategies.base import Strategy
from triage_local.apiserver.strategies.resizing import resize_errors, resized

DEFAULT_GRACE_SECONDS: Final = 30
TOLERATION_SECONDS: Final = 300
"""How long the admission plugin DefaultTolerationSeconds lets a pod stay on a node that is lost."""
TERMINAL_PHASES: Final = ("Succeeded", "Failed")
RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")

_VARIABLE_NAME: Final = re.compile(r"[ -<>-~]+")
_VARIABLE_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_CHANGE_FORBIDDEN: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


class PodStrategy(Strategy):
    """A pod as pkg/registry/core/pod and pkg/apis/core/validation treat it, as far as bare pods need."""

    graceful = True

    def __init__(self) -> None:
        super().__init__(model="V1Pod", has_status=True, has_generation=True)

    def created(self, obj: Json) -> Json:
        """A pending pod with defaults."""
        spec = _defaulted_spec(obj.get("spec") or {})
        return {**obj, "spec": spec, "status": {"phase": "Pending", "qosClass": _quality_of_service(spec)}}

    def updated(self, new: Json, old: Json) -> Json:
        """The defaults again, since a PUT may have left them out."""
        return {**new, "spec": _defaulted_spec(new.get("spec") or {})}

    def errors(self, new: Json, old: Json | None) -> list[FieldError]:
        """Missing and wrong fields of a new pod, forbidden changes of an old one."""
        spec = new["spec"]
        if old is not None:
            if _fixed(spec, old["spec"]) != _fixed(old["spec"], old["spec"]):
                return [forbidden("spec", _CHANGE_FORBIDDEN)]
            return super().errors(new, old)
        found = super().errors(new, old) + _container_errors(spec.get("containers") or [])
        if spec["restartPolicy"] not in RESTART_POLICIES:
            found.append(unsupported("spec.restartPolicy", spec["restartPolicy"], RESTART_POLICIES))
        return found

    def resized(self, new: Json, old: Json) -> Json:
        """Other resources for the containers, and nothing else."""
        pod = resized(new, old)
        return {**pod, "spec": _defaulted_spec(pod["spec"])}

    def resize_errors(self, new: Json, old: Json) -> list[FieldError]:
        """What holds for a new pod holds for a resized one."""
        found = super().errors(new, old) + _container_errors(new["spec"].get("containers") or [])
        return [*found, *resize_errors(new, old, _quality_of_service(new["spec"]))]

    def grace_seconds(self, obj: Json, asked: int | None) -> int:
        """The wish, else the pod's own period; none for a pod that runs nowhere, or no more."""
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        if not spec.get("nodeName") or status.get("phase") in TERMINAL_PHASES:
            return 0
        own = int(spec.get("terminationGracePeriodSeconds", 0))
        period = own if asked is None else asked
        return 1 if period < 0 else period


def _defaulted_spec(spec: Json) -> Json:
    defaulted = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": DEFAULT_GRACE_SECONDS,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        **spec,
    }
    for field in ("containers", "initContainers"):
        if field in spec:
            defaulted[field] = [_defaulted_container(container) for container in spec[field]]
    defaulted["tolerations"] = _defaulted_tolerations(spec.get("tolerations") or [])
    return defaulted


def _defaulted_container(container: Json) -> Json:
    image = str(container.get("image", ""))
    latest = image.endswith(":latest") or ":" not in image.rpartition("/")[2]
    return {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always" if latest else "IfNotPresent",
        **container,
        "resources": _defaulted_resources(container.get("resources") or {}),
    }


def _defaulted_resources(resources: Json) -> Json:
    amounts: Json = {
        field: {name: str(quantity) for name, quantity in resources[field].items()}
        for field in ("limits", "requests")
        if field in resources
    }
    if "limits" in amounts:
        # A limit without a request is also the request.
        amounts["requests"] = {**amounts["limits"], **amounts.get("requests", {})}
    return {**resources, **amounts}


def _defaulted_tolerations(tolerations: list[Json]) -> list[Json]:
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if not any(_tolerates(toleration, key) for toleration in tolerations)
    ]
    return tolerations + added


def _tolerates(toleration: Json, key: str) -> bool:
    return bool(toleration.get("key", key) == key and toleration.get("effect", "NoExecute") == "NoExecute")


def _quality_of_service(spec: Json) -> str:
    containers = spec.get("containers") or []
    if not any((container["resources"].get("requests") or {}) for container in containers):
        return "BestEffort"
    for container in containers:
        limits = container["resources"].get("limits") or {}
        requests = container["resources"].get("requests") or {}
        if any(name not in limits or requests.get(name) != limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def _container_errors(containers: list[Json]) -> list[FieldError]:
    if not containers:
        return [required("spec.containers")]
    found: list[FieldError] = []
    names: set[Any] = set()
    for place, container in enumerate(containers):
        path = f"spec.containers[{place}]"
        name = container.get("name")
        if not name:
            found.append(required(f"{path}.name"))
        elif name in names:
            found.append(duplicate(f"{path}.name", name))
        else:
            found.extend(label_errors(f"{path}.name", name))
        names.add(name)
        if not container.get("image"):
            found.append(required(f"{path}.image"))
        for index, variable in enumerate(container.get("env") or []):
            variable_name = variable.get("name") or ""
            if not variable_name:
                found.append(required(f"{path}.env[{index}].name"))
            elif not _VARIABLE_NAME.fullmatch(variable_name):
                found.append(invalid_value(f"{path}.env[{index}].name", variable_name, _VARIABLE_RULE))
        found.extend(_resource_errors(f"{path}.resources", container["resources"]))
    return found


def _resource_errors(path: str, resources: Json) -> list[FieldError]:
    limits = resources.get("limits") or {}
    found = []
    for name, request in (resources.get("requests") or {}).items():
        limit = limits.get(name)
        if limit is not None and amount(request) > amount(limit):
            detail = f"must be less than or equal to {name} limit of {limit}"
            found.append(invalid_value(f"{path}.requests", request, detail))
    return found


def _fixed(spec: Json, old: Json) -> Json:
    """The spec without what an update may change: images, deadline, tolerations beside the old ones."""
    fixed = {key: value for key, value in spec.items() if key != "activeDeadlineSeconds"}
    for field in ("containers", "initContainers"):
        if field in fixed:
            fixed[field] = [
                {k: v for k, v in container.items() if k != "image"} for container in fixed[field]
            ]
    known = old.get("tolerations") or []
    fixed["tolerations"] = [
        toleration for toleration in known if toleration in (spec.get("tolerations") or [])
    ]
    return fixed
