"""The resources that a custom resource definition makes."""

from collections.abc import Callable
from typing import Any, Final

from triage_local.apiserver import jsonpaths
from triage_local.apiserver.columns import AGE, NAME, Column, age
from triage_local.apiserver.objects import Json
from triage_local.apiserver.resources import Resource
from triage_local.apiserver.strategies.customs import CustomStrategy

_NUMERIC: Final = {"integer": (int,), "number": (int, float), "boolean": (bool,)}


def resources_of(definition: Json) -> list[Resource]:
    """One resource for each served version of an accepted definition, the stored version first."""
    spec = definition["spec"]
    names = spec["names"]
    versions = sorted(spec["versions"], key=lambda version: not version.get("storage"))
    return [
        Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            singular=names["singular"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(name for name in ("status",) if name in (version.get("subresources") or {})),
            strategy=CustomStrategy(
                version["schema"]["openAPIV3Schema"],
                has_status="status" in (version.get("subresources") or {}),
            ),
            columns=_columns(version.get("additionalPrinterColumns")),
            fields={entry["jsonPath"].lstrip("."): "" for entry in version.get("selectableFields") or []},
            schema=version["schema"]["openAPIV3Schema"],
        )
        for version in versions
        if version.get("served")
    ]


def _columns(declared: list[Json] | None) -> tuple[Column, ...]:
    if not declared:
        return (NAME, AGE)
    return (NAME, *(_column(entry) for entry in declared))


def _column(entry: Json) -> Column:
    return Column(
        name=entry["name"],
        type=entry["type"],
        format=entry.get("format", ""),
        description=entry.get("description", ""),
        priority=int(entry.get("priority", 0)),
        cell=_cell(entry["jsonPath"], entry["type"]),
    )


def _cell(path: str, kind: str) -> Callable[[Json], Any]:
    def cell(obj: Json) -> Any:
        values = jsonpaths.found(path, obj)
        if not values or values[0] is None:
            return None
        value = values[0]
        if kind == "date":
            return age(value) if isinstance(value, str) else None
        if kind == "string":
            return jsonpaths.printed(value)
        return value if isinstance(value, _NUMERIC.get(kind, ())) else None

    return cell
