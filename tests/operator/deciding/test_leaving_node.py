"""A node that is about to go."""

from support.builders import Scenario, a_run, an_attempt, at_work, table, unclaimed
from support.clock import ago
from support.pods import a_pod
from triage_operator.node_taints import Taint

_CORDON = Taint(key="node.kubernetes.io/unschedulable", value="", effect="NoSchedule")
_DISRUPTED = Taint(key="karpenter.sh/disrupted", value="", effect="NoSchedule")
_CORDONED = at_work().where(parting_taints=(_CORDON,))
_DOOMED = at_work().where(parting_taints=(_CORDON, _DISRUPTED))


@table(
    ("the attempt on a cordoned one is asked to hand off", _CORDONED, "RequestHandoff 101 drain"),
    (
        "so is the one on a node that an autoscaler is about to take away",
        at_work().where(parting_taints=(_DISRUPTED,)),
        "RequestHandoff 101 drain",
    ),
    (
        "it is asked once",
        a_run()
        .attempted(an_attempt(handoff_requested_at=ago(1), handoff_reason="drain"))
        .with_pod(a_pod().running())
        .where(parting_taints=(_CORDON,)),
        "Wait Running HandingOff",
    ),
    (
        "one that has not begun is left alone",
        a_run().attempted(unclaimed()).with_pod(a_pod().running(ago(5))).where(parting_taints=(_CORDON,)),
        "Wait Pending Pending until +115",
    ),
    (
        "one that is evicted already is left alone",
        _CORDONED.with_pod(a_pod().running().evicted()),
        "Wait Running HandingOff until +32",
    ),
    (
        "one that tolerates the node would come back to it",
        _CORDONED.with_pod(a_pod().running().tolerating(key=_CORDON.key, operator="Exists")),
        "Wait Running Running",
    ),
    (
        "one that tolerates everything would come back to it",
        _DOOMED.with_pod(a_pod().running().tolerating(operator="Exists")),
        "Wait Running Running",
    ),
    (
        "one that tolerates some of the taints is kept off by the others",
        _DOOMED.with_pod(a_pod().running().tolerating(key=_CORDON.key, operator="Exists")),
        "RequestHandoff 101 drain",
    ),
    (
        "other tolerations do not matter",
        _CORDONED.with_pod(a_pod().running().tolerating(key="gpu", operator="Exists")),
        "RequestHandoff 101 drain",
    ),
    (
        "one whose agent names its node would come back to it",
        _CORDONED.of_agent(podTemplate={"spec": {"nodeName": "node-1"}}),
        "Wait Running Running",
    ),
)
def test_node_is_left_in_time(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_who_is_asked_to_leave_is_told_by_which_taint() -> None:
    assert "karpenter.sh/disrupted" in at_work().where(parting_taints=(_DISRUPTED,)).action().message
