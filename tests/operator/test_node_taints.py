"""Taints of nodes: which announce that a node is about to go, and which pods do not heed them."""

from typing import Any

import pytest

from triage_operator.node_taints import Taint, parting_taints, tolerates

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DOOMED = Taint(key=TO_BE_DELETED, value="1764565200", effect="NoSchedule")


def _node(*taints: tuple[str, str], **spec: Any) -> dict[str, Any]:
    return {"spec": {"taints": [{"key": key, "effect": effect} for key, effect in taints], **spec}}


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({}, id="one without anything"),
        pytest.param(_node(("node.kubernetes.io/not-ready", "NoExecute")), id="one that is not ready"),
        pytest.param(_node(("dedicated", "NoSchedule")), id="one for others"),
        pytest.param(
            _node(("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule")), id="one that may be deleted"
        ),
        pytest.param(_node((TO_BE_DELETED, "PreferNoSchedule")), id="one that a successor could get again"),
    ],
)
def test_a_node_stays(node: dict[str, Any]) -> None:
    assert parting_taints(node) == ()


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(_node(unschedulable=True), id="cordoned"),
        pytest.param(_node((TO_BE_DELETED, "NoSchedule")), id="cluster-autoscaler"),
        pytest.param(_node(("karpenter.sh/disrupted", "NoSchedule")), id="Karpenter"),
        pytest.param(_node(("aws-node-termination-handler/spot-itn", "NoExecute")), id="of another effect"),
    ],
)
def test_a_node_is_about_to_go(node: dict[str, Any]) -> None:
    assert len(parting_taints(node)) == 1


def test_a_taint_is_read_with_its_value() -> None:
    taint = {
        "key": DOOMED.key,
        "value": DOOMED.value,
        "effect": DOOMED.effect,
        "timeAdded": "2026-01-01T00:00:00Z",
    }
    assert parting_taints({"spec": {"taints": [taint]}}) == (DOOMED,)


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists", "key": TO_BE_DELETED}, True),
        ({"operator": "Exists", "key": TO_BE_DELETED, "effect": "NoSchedule"}, True),
        ({"operator": "Exists", "key": "another"}, False),
        ({"operator": "Equal", "key": TO_BE_DELETED, "value": DOOMED.value}, True),
        ({"key": TO_BE_DELETED, "value": DOOMED.value}, True),
        ({"key": TO_BE_DELETED, "value": "another"}, False),
        ({"key": TO_BE_DELETED}, False),
    ],
)
def test_a_pod_tolerates_a_taint_as_the_scheduler_sees_it(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates({"spec": {"tolerations": [toleration]}}, DOOMED) is expected


def test_a_pod_without_tolerations_tolerates_nothing() -> None:
    assert not tolerates({"spec": {}}, DOOMED)
