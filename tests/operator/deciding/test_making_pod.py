"""A recorded attempt without a pod."""

from support.builders import Scenario, a_run, podless, table
from support.clock import ago
from support.pods import a_pod

_PODLESS = a_run().attempted(podless())


@table(
    ("it gets its pod", _PODLESS, "CreatePod 101 Starting"),
    (
        "under another name where another's pod stands",
        _PODLESS.where(foreign_pod=True),
        "CreatePod 101 ForeignPod next name",
    ),
    ("one that stands already is left alone", _PODLESS.with_pod(a_pod()), "Wait Pending Pending"),
    (
        "it waits after a refusal",
        _PODLESS.refused(at=ago(4)),
        "Wait Pending PodRefused until +6",
    ),
    ("it is tried again after a refusal", _PODLESS.refused(at=ago(10)), "CreatePod 101 Starting"),
    ("it waits for its agent", _PODLESS.without_agent(), "Wait Pending UnknownAgent"),
    (
        "it waits for an agent that cannot be read",
        _PODLESS.without_agent("spec.image: field required"),
        "Wait Pending BadAgent",
    ),
)
def test_attempt_without_a_pod(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
