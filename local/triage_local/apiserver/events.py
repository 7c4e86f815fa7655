"""Events have two shapes over one store: the core group's, which is stored, and that of ``events.k8s.io``."""

from typing import Final

from triage_local.apiserver.objects import Json

FIELDS: Final = {
    "involvedObject.kind": "",
    "involvedObject.namespace": "",
    "involvedObject.name": "",
    "involvedObject.uid": "",
    "involvedObject.apiVersion": "",
    "involvedObject.resourceVersion": "",
    "involvedObject.fieldPath": "",
    "reason": "",
    "reportingComponent": "",
    "source": "",
    "type": "",
}
"""Fields that core events can be selected by."""

_NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES: Final = {new: core for core, new in _NEW_NAMES.items()}


def new_shape(event: Json) -> Json:
    """A core event in the shape of ``events.k8s.io/v1``."""
    return {_NEW_NAMES.get(key, key): value for key, value in event.items()}


def core_shape(event: Json) -> Json:
    """The other way round."""
    return {_CORE_NAMES.get(key, key): value for key, value in event.items()}
