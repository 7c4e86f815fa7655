"""Which node takes a pod: one table."""

import pytest

from support.nodes import Json
from triage_local.kubelet.scheduling import Unschedulable, choose_node, requested_bytes


def a_node(name: str, memory: str = "4Gi", *, taints: list[Json] | None = None, **spec: object) -> Json:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {**spec, "taints": taints or []},
        "status": {"allocatable": {"memory": memory}},
    }


def a_pod(memory: str = "1Gi", *, node: str | None = None, phase: str = "Pending", **spec: object) -> Json:
    container = {"resources": {"requests": {"memory": memory}}}
    bound = {} if node is None else {"nodeName": node}
    return {"spec": {"containers": [container], **bound, **spec}, "status": {"phase": phase}}


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SOFT = {"key": "gpu", "effect": "PreferNoSchedule"}
BOTH = [a_node("a"), a_node("b")]


@pytest.mark.parametrize(
    ("pod", "nodes", "pods", "chosen"),
    [
        pytest.param(a_pod(), BOTH, [], "a", id="the first of two that are alike"),
        pytest.param(a_pod(), BOTH, [a_pod(node="a")], "b", id="the one with more free memory"),
        pytest.param(
            a_pod(),
            BOTH,
            [a_pod("3Gi", node="a", phase="Failed"), a_pod(node="b")],
            "a",
            id="ended pods take none",
        ),
        pytest.param(
            a_pod("5Gi"), BOTH, [], "0/2 nodes are available: 2 Insufficient memory.", id="too large for both"
        ),
        pytest.param(a_pod("4Gi"), BOTH, [a_pod("1", node="a")], "b", id="fits to the last byte"),
        pytest.param(
            a_pod(), [a_node("a", unschedulable=True), a_node("b")], [], "b", id="not a cordoned one"
        ),
        pytest.param(
            a_pod(),
            [a_node("a", unschedulable=True), a_node("b", "1Mi")],
            [],
            "0/2 nodes are available: 1 Insufficient memory, 1 node(s) were unschedulable.",
            id="each node's reason is counted",
        ),
        pytest.param(
            a_pod(tolerations=[{"operator": "Exists"}]),
            [a_node("a", unschedulable=True)],
            [],
            "a",
            id="who tolerates everything goes to a cordoned one",
        ),
        pytest.param(
            a_pod(),
            [a_node("a", taints=[TAINT])],
            [],
            "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}.",
            id="not a tainted one",
        ),
        pytest.param(a_pod(), [a_node("a", taints=[SOFT])], [], "a", id="a soft taint keeps nobody off"),
        pytest.param(
            a_pod(tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]),
            [a_node("a", taints=[TAINT])],
            [],
            "a",
            id="a tainted one where the value is tolerated",
        ),
        pytest.param(
            a_pod(tolerations=[{"key": "gpu", "operator": "Equal", "value": "no"}]),
            [a_node("a", taints=[TAINT])],
            [],
            "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}.",
            id="another value is not tolerated",
        ),
        pytest.param(
            a_pod(tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]),
            [a_node("a", taints=[TAINT])],
            [],
            "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: yes}.",
            id="another effect is not tolerated",
        ),
        pytest.param(
            a_pod(nodeSelector={"kubernetes.io/hostname": "b"}),
            BOTH,
            [a_pod(node="b")],
            "b",
            id="the selected one",
        ),
        pytest.param(
            a_pod(),
            [],
            [],
            "0/0 nodes are available: no nodes available to schedule pods.",
            id="no node at all",
        ),
    ],
)
def test_the_node_for_a_pod(pod: Json, nodes: list[Json], pods: list[Json], chosen: str) -> None:
    assert choose_node(pod, nodes, pods) == chosen
    assert isinstance(choose_node(pod, nodes, pods), Unschedulable) == chosen.startswith("0/")


def test_a_pod_needs_its_containers_together_or_its_largest_init_container() -> None:
    def container(memory: str) -> Json:
        return {"resources": {"limits": {"memory": memory}}}

    spec = {"containers": [container("1Mi"), container("2Mi")], "initContainers": [container("2Mi")]}
    assert requested_bytes({"spec": spec}) == 3 * 2**20
    spec["initContainers"].append(container("5Mi"))
    assert requested_bytes({"spec": spec}) == 5 * 2**20
