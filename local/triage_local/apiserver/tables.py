"""Lists and objects as the ``Table`` that kubectl prints, and as metadata alone."""

from collections.abc import Sequence
from enum import StrEnum

from triage_local.apiserver.objects import Json, metadata
from triage_local.apiserver.resources import Resource


class Shape(StrEnum):
    """What the client wants of an object or a list."""

    OBJECT = ""
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"
    METADATA_LIST = "PartialObjectMetadataList"


def wanted_shape(accept: str) -> Shape:
    """The first shape in an ``Accept`` header that is served."""
    for media_range in accept.split(","):
        parts = [part.strip() for part in media_range.split(";")]
        if parts[0] not in ("application/json", "*/*", "application/*", ""):
            continue
        parameters = dict(part.partition("=")[::2] for part in parts[1:])
        if "as" not in parameters:
            return Shape.OBJECT
        if (
            parameters.get("g") == "meta.k8s.io"
            and parameters.get("v") == "v1"
            and parameters["as"] in set(Shape)
        ):
            return Shape(parameters["as"])
    return Shape.OBJECT


def table(
    resource: Resource, objects: Sequence[Json], list_metadata: Json, *, include: str, header: bool = True
) -> Json:
    """The table of shown objects. ``include``: each row carries ``None``, ``Metadata`` or ``Object``."""
    rows = []
    for obj in objects:
        row: Json = {"cells": [column.cell(obj) for column in resource.columns]}
        if include == "Object":
            row["object"] = obj
        elif include != "None":
            row["object"] = partial(obj)
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata,
        "columnDefinitions": [column.definition() for column in resource.columns] if header else [],
        "rows": rows,
    }


def partial(obj: Json) -> Json:
    """The object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata(obj)}
