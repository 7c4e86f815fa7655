"""The kinds of PATCH that start from the patch alone: what an object becomes under each."""

import copy
from enum import StrEnum
from typing import Any, Final

import jsonpatch
import jsonpointer

from triage_local.apiserver.exceptions import BadRequestError, InvalidError
from triage_local.apiserver.objects import Json


class PatchType(StrEnum):
    """Content types of a PATCH."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


MERGE_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort",),
    "taints": ("key", "effect"),
    "addresses": ("type",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "ownerReferences": ("uid",),
    "imagePullSecrets": ("name",),
    "secrets": ("name",),
}
"""Lists of the built-in types that a strategic merge joins by key, by the name of their field.

From the ``x-kubernetes-patch-merge-key`` of the published OpenAPI document, except taints: their key there is
``key`` alone, which loses a taint whose key is there twice. Lists that are not named here are replaced.
"""

_SET_FIELDS: Final = frozenset({"finalizers"})
"""Lists of plain values that a strategic merge unites."""


def patched(kind: PatchType, obj: Json, patch: Any) -> Json:
    """The object after the patch.

    Raises BadRequestError for a patch that is none, InvalidError for a JSON patch that does not fit or whose
    ``test`` fails.
    """
    if kind is PatchType.JSON:
        return _json_patched(obj, patch)
    if not isinstance(patch, dict):
        raise BadRequestError("the patch must be an object")
    merged = strategic_merged(obj, patch) if kind is PatchType.STRATEGIC else merge_patched(obj, patch)
    assert isinstance(merged, dict)
    return merged


def _json_patched(obj: Json, patch: Any) -> Json:
    if not isinstance(patch, list):
        raise BadRequestError("the patch must be an array of operations")
    try:
        result = jsonpatch.JsonPatch(patch).apply(copy.deepcopy(obj))
    except jsonpatch.InvalidJsonPatch as error:
        raise BadRequestError(str(error)) from error
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException) as error:
        raise InvalidError("the server rejected our request due to an error in our request") from error
    if not isinstance(result, dict):
        raise BadRequestError("the patch leaves no object")
    return result


def merge_patched(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patched(merged.get(key), item)
    return merged


def strategic_merged(value: Any, patch: Any) -> Any:
    """A merge in which the lists in ``MERGE_KEYS`` are joined, with ``$patch``, ``$deleteFromPrimitiveList``,
    ``$setElementOrder`` and ``$retainKeys`` as kubectl sends them."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: item for key, item in patch.items() if key != "$patch"}
    merged = dict(value) if isinstance(value, dict) else {}
    if "$retainKeys" in patch:
        merged = {key: item for key, item in merged.items() if key in patch["$retainKeys"]}
    for key, item in patch.items():
        if key.startswith("$"):
            directive, slash, field = key.partition("/")
            if slash and directive == "$deleteFromPrimitiveList":
                merged[field] = [old for old in merged.get(field) or [] if old not in item]
        elif item is None or (isinstance(item, dict) and item.get("$patch") == "delete"):
            merged.pop(key, None)
        elif isinstance(item, list) and key in MERGE_KEYS:
            merged[key] = _joined(merged.get(key) or [], item, MERGE_KEYS[key])
        elif isinstance(item, list) and key in _SET_FIELDS:
            old = merged.get(key) or []
            merged[key] = old + [entry for entry in item if entry not in old]
        else:
            merged[key] = strategic_merged(merged.get(key), item)
    return merged


def _joined(old: list[Any], patch: list[Any], keys: tuple[str, ...]) -> list[Any]:
    if any(isinstance(entry, dict) and entry.get("$patch") == "replace" for entry in patch):
        return [entry for entry in patch if entry.get("$patch") != "replace"]
    joined = list(old)
    for entry in patch:
        if keys[0] not in entry:
            raise BadRequestError(f"map does not contain declared merge key: {keys[0]}")
        # A patch that names only the first key, as kubectl's deletions do, means every entry with it.
        used = [key for key in keys if key in entry]
        places = [n for n, item in enumerate(joined) if all(item.get(key) == entry[key] for key in used)]
        if entry.get("$patch") == "delete":
            joined = [item for n, item in enumerate(joined) if n not in places]
        elif places:
            joined[places[0]] = strategic_merged(joined[places[0]], entry)
        else:
            joined.append(strategic_merged({}, entry))
    return joined
