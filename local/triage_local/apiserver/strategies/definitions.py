"""Custom resource definitions: their names, their schema, and the conditions that say they are served."""

import re
from typing import Any, Final

from jsonschema.exceptions import SchemaError

from triage_local.apiserver import cel_rules, schemas
from triage_local.apiserver.field_errors import FieldError, forbidden, invalid_value, required, unsupported
from triage_local.apiserver.objects import Json, name_of, timestamp, with_metadata
from triage_local.apiserver.strategies.base import Strategy

FINALIZER: Final = "customresourcecleanup.apiextensions.k8s.io"
"""Holds a definition until its objects are gone."""
SCOPES: Final = ("Cluster", "Namespaced")
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


class DefinitionStrategy(Strategy):
    """A definition is accepted and established at once, where a real server takes some milliseconds."""

    def __init__(self) -> None:
        super().__init__(model="V1CustomResourceDefinition", has_status=True, has_generation=True)

    def created(self, obj: Json) -> Json:
        """With all names, the finalizer that waits for its objects, and the status of one that is served."""
        named = _named(obj)
        now = timestamp()
        accepted = {"status": "True", "lastTransitionTime": now}
        names = named.get("spec", {}).get("names", {})
        status = {
            "acceptedNames": names,
            "storedVersions": [v.get("name") for v in _versions(named) if v.get("storage")],
            "conditions": [
                {
                    **accepted,
                    "type": "NamesAccepted",
                    "reason": "NoConflicts",
                    "message": "no conflicts found",
                },
                {
                    **accepted,
                    "type": "Established",
                    "reason": "InitialNamesAccepted",
                    "message": "the initial names have been accepted",
                },
            ],
        }
        return {**with_metadata(named, finalizers=[FINALIZER]), "status": status}

    def updated(self, new: Json, old: Json) -> Json:
        """With all names again."""
        named = _named(new)
        return {**named, "status": {**named.get("status", {}), "acceptedNames": named["spec"].get("names")}}

    def errors(self, new: Json, old: Json | None) -> list[FieldError]:
        """Missing names, changed identity, schemas that are not structural, rules that do not compile."""
        spec = new.get("spec") or {}
        names = spec.get("names") or {}
        found = super().errors(new, old)
        found += [
            required(f"spec.{field}")
            for field in ("group", "scope", "names", "versions")
            if not spec.get(field)
        ]
        found += [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
        if found:
            return found
        if name_of(new) != f"{names['plural']}.{spec['group']}":
            detail = 'must be spec.names.plural+"."+spec.group'
            found.append(invalid_value("metadata.name", name_of(new), detail))
        if spec["scope"] not in SCOPES:
            found.append(unsupported("spec.scope", spec["scope"], SCOPES))
        if not _LABEL.fullmatch(str(names["plural"])):
            found.append(invalid_value("spec.names.plural", names["plural"], "must be a DNS-1035 label"))
        if sum(bool(version.get("storage")) for version in _versions(new)) != 1:
            detail = "must have exactly one version marked as storage version"
            found.append(invalid_value("spec.versions", [v.get("name") for v in _versions(new)], detail))
        if old is not None:
            was = old["spec"]
            if (spec["group"], spec["scope"]) != (was["group"], was["scope"]):
                found.append(forbidden("spec", "field is immutable"))
        return [*found, *_schema_errors(_versions(new))]


def _named(obj: Json) -> Json:
    spec = obj.get("spec") or {}
    names = spec.get("names") or {}
    kind = str(names.get("kind", ""))
    named = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    return {**obj, "spec": {"conversion": {"strategy": "None"}, **spec, "names": named}}


def _versions(obj: Json) -> list[Json]:
    found: list[Json] = (obj.get("spec") or {}).get("versions") or []
    return found


def _schema_errors(versions: list[Json]) -> list[FieldError]:
    found: list[FieldError] = []
    schemas_by_path: dict[str, Json] = {}
    for place, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        path = f"spec.versions[{place}].schema.openAPIV3Schema"
        if schema:
            schemas_by_path[path] = schema
        else:
            found.append(required(path, "schemas are required"))
    schema, *others = schemas_by_path.values() or [None]
    if schema is not None and all(other == schema for other in others):
        # A server keeps a schema that all versions share in one place, and names that.
        schemas_by_path = {"spec.validation.openAPIV3Schema": schema}
    for path, schema in schemas_by_path.items():
        found.extend(list(_structural_errors(path, schema, root=True)) or _compilation_errors(path, schema))
    return found


def _compilation_errors(path: str, schema: Json) -> list[FieldError]:
    try:
        schemas.validator(schema)
        cel_rules.compiled(schema, path)
    except SchemaError as error:
        where = schemas.dotted(list(error.absolute_path))
        return [invalid_value(f"{path}.{where}", error.instance, error.message)]
    except cel_rules.RuleSyntaxError as error:
        return [invalid_value(error.path, "rule", str(error))]
    return []


def _structural_errors(path: str, schema: Json, *, root: bool = False) -> list[FieldError]:
    found: list[FieldError] = []
    if not schema.get("type") and not (
        schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        found.append(required(f"{path}.type", "must not be empty for specified object fields"))
    if root and schema.get("type") not in (None, "object"):
        found.append(invalid_value(f"{path}.type", schema["type"], "must be object at the root"))
    if schema.get("properties") and schema.get("additionalProperties"):
        found.append(
            forbidden(
                f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
            )
        )
    children: list[tuple[str, Any]] = [
        (f"{path}.properties[{key}]", inner) for key, inner in (schema.get("properties") or {}).items()
    ]
    if root:
        children = [
            (where, inner) for where, inner in children if not where.endswith(".properties[metadata]")
        ]
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            children.append((f"{path}.{field}", schema[field]))
    for where, inner in children:
        found.extend(_structural_errors(where, inner))
    return found
