"""A small custom resource with everything that ours have: schema, defaults, rules, columns, a status."""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gadgets:
    """Where the gadgets of a test are."""

    group: str
    namespace: str
    definitions: str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    @property
    def path(self) -> str:
        """Path of the gadgets of the test's namespace."""
        return f"/apis/{self.group}/v1/namespaces/{self.namespace}/gadgets"

    def one(self, name: str, spec: Json, **metadata: Any) -> Json:
        """A gadget."""
        meta = {"name": name, "namespace": self.namespace, **metadata}
        return {"apiVersion": f"{self.group}/v1", "kind": "Gadget", "metadata": meta, "spec": spec}


def gadget_definition(group: str) -> Json:
    """The definition of gadgets in this group."""
    spec_schema: Json = {
        "type": "object",
        "required": ["report"],
        "properties": {
            "report": {"type": "string", "minLength": 1, "maxLength": 20},
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
            "mode": {"type": "string", "enum": ["A", "B"]},
            "name": {"type": "string", "pattern": "^[a-z]*$"},
            "due": {"type": "string", "format": "date-time"},
            "note": {"type": "string", "nullable": True},
            "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "port": {"x-kubernetes-int-or-string": True},
            "parts": {
                "type": "array",
                "maxItems": 3,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["id"],
                "items": {
                    "type": "object",
                    "required": ["id"],
                    "properties": {
                        "id": {"type": "string", "maxLength": 10},
                        "text": {"type": "string", "maxLength": 10},
                    },
                    "x-kubernetes-validations": [
                        {
                            "rule": "!has(oldSelf.text) || self.text == oldSelf.text",
                            "message": "text is immutable",
                        }
                    ],
                },
            },
        },
        "x-kubernetes-validations": [
            {
                "rule": "self.report == oldSelf.report",
                "message": "report is immutable",
                "fieldPath": ".report",
            },
            {"rule": "!(has(self.mode) && has(self.port))", "message": "mode and port exclude each other"},
            {
                "rule": "self.size < 100",
                "messageExpression": "self.size < 1000 ? 'too big' : 'far too big'",
                "reason": "FieldValueForbidden",
                "fieldPath": ".size",
            },
        ],
    }
    status_schema: Json = {
        "type": "object",
        "properties": {
            "phase": {"type": "string"},
            "count": {"type": "integer"},
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
                },
            },
        },
    }
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.mode"}],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "required": ["spec"],
                "properties": {"spec": spec_schema, "status": status_schema},
            }
        },
    }
    names = {"kind": "Gadget", "plural": "gadgets", "shortNames": ["gd"], "categories": ["toys"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
