"""Nodes that are about to go, by the taints with which autoscalers and drainers announce it before they evict."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

_ANNOUNCING: Final = frozenset(
    {
        # A cordon: `kubectl cordon` and `drain`, and most of those below beside their own taint.
        # https://kubernetes.io/docs/reference/labels-annotations-taints/#node-kubernetes-io-unschedulable
        _UNSCHEDULABLE,
        # kubernetes/autoscaler, cluster-autoscaler/utils/taints/taints.go
        "ToBeDeletedByClusterAutoscaler",
        # kubernetes-sigs/karpenter, pkg/apis/v1/taints.go, and before version 1 pkg/apis/v1beta1/taints.go
        "karpenter.sh/disrupted",
        "karpenter.sh/disruption",
        # aws/aws-node-termination-handler, pkg/node/node.go
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/scheduled-maintenance",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "aws-node-termination-handler/rebalance-recommendation",
        # GoogleCloudPlatform/k8s-node-termination-handler, deploy/k8s.yaml
        "cloud.google.com/impending-node-termination",
        # https://learn.microsoft.com/azure/aks/node-auto-drain; its name before, by Azure/AKS, CHANGELOG.md
        "remediator.kubernetes.azure.com/unschedulable",
        "remediator.aks.microsoft.com/unschedulable",
        # castai/spot-handler, handler/handler.go
        "autoscaling.cast.ai/draining",
    }
)

_KEEPING_OFF: Final = frozenset({"NoSchedule", "NoExecute"})
"""Effects because of which the successor gets another node. ``PreferNoSchedule`` is no decision yet, as that of
``DeletionCandidateOfClusterAutoscaler``, and the successor could come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taint:
    """A taint of a node. ``value`` is empty where it has none."""

    key: str
    value: str
    effect: str


def parting_taints(node: Mapping[str, Any]) -> tuple[Taint, ...]:
    """Give the taints by which a node is about to go; none: as far as anybody said, it stays."""
    spec = node.get("spec") or {}
    # The control plane puts the taint of a cordon on by itself, a moment later.
    cordon = [{"key": _UNSCHEDULABLE, "effect": "NoSchedule"}] if spec.get("unschedulable") else []
    return tuple(
        Taint(key=taint["key"], value=taint.get("value") or "", effect=taint["effect"])
        for taint in (*cordon, *(spec.get("taints") or ()))
        if taint["key"] in _ANNOUNCING and taint["effect"] in _KEEPING_OFF
    )


def tolerates(pod: Mapping[str, Any], taint: Taint) -> bool:
    """Say whether a taint does not keep a pod like this off a node.

    An operator other than the two of
    https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/ counts as a match.
    """
    return any(
        toleration.get("key") in (None, "", taint.key)
        and toleration.get("effect") in (None, "", taint.effect)
        and (toleration.get("operator", "Equal") != "Equal" or (toleration.get("value") or "") == taint.value)
        for toleration in pod["spec"].get("tolerations") or ()
    )
