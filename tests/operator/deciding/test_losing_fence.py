"""An open attempt whose fence was closed."""

from support.builders import Scenario, a_run, at_work, podless, table
from support.pods import a_pod
from triage_contract.database.rows import FenceRow

_CLOSED = FenceRow(epoch=1, token=None)


@table(
    (
        "the operator died before it recorded the end",
        at_work().where(fence=_CLOSED),
        "EndAttempt 101 lost - Lost",
    ),
    (
        "it gets no pod any more",
        a_run().attempted(podless()).where(fence=_CLOSED),
        "EndAttempt 101 lost - Lost",
    ),
    (
        "somebody else went on",
        at_work().where(fence=FenceRow(epoch=2, token="another")),
        "EndAttempt 101 lost - Lost",
    ),
    (
        "a pod that tells its end goes first",
        at_work().with_pod(a_pod().exited(137)).where(fence=_CLOSED),
        "EndAttempt 101 lost sigkill Lost exit 137 counted",
    ),
    (
        "a fence that was read before the attempt was opened says nothing",
        at_work().where(fence=FenceRow(epoch=0, token=None)),
        "Wait Running Running",
    ),
)
def test_attempt_behind_its_fence_is_lost(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
