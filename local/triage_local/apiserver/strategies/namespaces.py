"""Namespaces: active until deleted, then terminating until the namespace controller has emptied them."""

from typing import Final

from triage_local.apiserver.objects import Json, metadata, name_of, with_metadata
from triage_local.apiserver.strategies.base import Strategy

FINALIZER: Final = "kubernetes"
"""Held in ``spec.finalizers`` by the namespace controller until the namespace is empty."""
NAME_LABEL: Final = "kubernetes.io/metadata.name"


class NamespaceStrategy(Strategy):
    """Sets phase, finalizer and name label as the API server does."""

    label_name = True

    def __init__(self) -> None:
        super().__init__(model="V1Namespace", has_status=True)

    def created(self, obj: Json) -> Json:
        """An active namespace with the controller's finalizer."""
        spec = {**(obj.get("spec") or {}), "finalizers": [FINALIZER]}
        return {**self._labelled(obj), "spec": spec, "status": {"phase": "Active"}}

    def updated(self, new: Json, old: Json) -> Json:
        """The finalizer is changed through the subresource ``finalize`` only, the label never."""
        return {**self._labelled(new), "spec": old.get("spec") or {}}

    def held(self, obj: Json) -> bool:
        """Whether the controller has not emptied it yet."""
        return bool((obj.get("spec") or {}).get("finalizers"))

    def terminating(self, obj: Json) -> Json:
        """With the phase that says so."""
        return {**obj, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}

    def _labelled(self, obj: Json) -> Json:
        labels = {**(metadata(obj).get("labels") or {}), NAME_LABEL: name_of(obj)}
        return with_metadata(obj, labels=labels)
