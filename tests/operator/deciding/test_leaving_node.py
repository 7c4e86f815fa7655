"""A node that takes no more pods."""

from support.builders import Scenario, a_run, an_attempt, at_work, table, unclaimed
from support.clock import ago
from support.pods import a_pod

_CORDONED = at_work().where(node_unschedulable=True)


@table(
    ("the attempt is asked to hand off", _CORDONED, "RequestHandoff 101 drain"),
    (
        "it is asked once",
        a_run()
        .attempted(an_attempt(handoff_requested_at=ago(1), handoff_reason="drain"))
        .with_pod(a_pod().running())
        .where(node_unschedulable=True),
        "Wait Running HandingOff",
    ),
    (
        "one that has not begun is left alone",
        a_run().attempted(unclaimed()).with_pod(a_pod().running(ago(5))).where(node_unschedulable=True),
        "Wait Pending Pending until +115",
    ),
    (
        "one that is evicted already is left alone",
        _CORDONED.with_pod(a_pod().running().evicted()),
        "Wait Running HandingOff until +32",
    ),
    (
        "one that tolerates the node would come back to it",
        _CORDONED.with_pod(
            a_pod().running().tolerating(key="node.kubernetes.io/unschedulable", operator="Exists")
        ),
        "Wait Running Running",
    ),
    (
        "one that tolerates everything would come back to it",
        _CORDONED.with_pod(a_pod().running().tolerating(operator="Exists")),
        "Wait Running Running",
    ),
    (
        "other tolerations do not matter",
        _CORDONED.with_pod(a_pod().running().tolerating(key="gpu", operator="Exists")),
        "RequestHandoff 101 drain",
    ),
)
def test_node_is_left_in_time(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
