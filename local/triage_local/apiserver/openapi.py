"""What kubectl reads of the OpenAPI v3 document: custom schemas, and that writes know ``fieldValidation``."""

from typing import Any

from triage_local.apiserver.objects import Json
from triage_local.apiserver.resources import Catalogue, Resource


def index(catalogue: Catalogue) -> Json:
    """Answer of ``/openapi/v3``."""
    paths = sorted({_path(resource) for resource in catalogue})
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in paths}}


def document(path: str, catalogue: Catalogue) -> Json | None:
    """Answer of ``/openapi/v3/<path>``, such as ``apis/apps/v1``; None: there is no such version."""
    found = [resource for resource in catalogue if _path(resource) == path]
    if not found:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1"},
        "paths": {
            f"/{path}/{place}{resource.plural}/{{name}}": _operations(resource)
            for resource in found
            for place in ["namespaces/{namespace}/" if resource.namespaced else ""]
        },
        "components": {"schemas": {_component(resource): _schema(resource) for resource in found}},
    }


def _path(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def _component(resource: Resource) -> str:
    group = ".".join(reversed(resource.group.split("."))) if resource.group else "io.k8s.api.core"
    return f"{group}.{resource.version}.{resource.kind}"


def _kinds(resource: Resource) -> Json:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _operations(resource: Resource) -> Json:
    parameter: dict[str, Any] = {"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}
    operation = {
        "parameters": [parameter],
        "responses": {},
        "x-kubernetes-group-version-kind": _kinds(resource),
    }
    return {"patch": {**operation, "x-kubernetes-action": "patch"}, "put": operation}


def _schema(resource: Resource) -> Json:
    schema = resource.schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {**schema, "x-kubernetes-group-version-kind": [_kinds(resource)]}
