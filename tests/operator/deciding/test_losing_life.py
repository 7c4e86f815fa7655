"""Signs of life: the lock and the heartbeat."""

from support.builders import MEBIBYTE, Scenario, a_run, an_attempt, at_work, table, unclaimed
from support.clock import ago
from support.pods import a_pod


def _beating(seconds_ago: float, used_mebibytes: int = 100, **fields: object) -> Scenario:
    attempt = an_attempt(heartbeat_at=ago(seconds_ago), memory_used_bytes=used_mebibytes * MEBIBYTE, **fields)
    return a_run().attempted(attempt).with_pod(a_pod().running())


@table(
    (
        "a lock that just came free is looked at again",
        _beating(1).with_lock_free_for(0.1),
        "Wait Running Running until +0.1",
    ),
    (
        "a lock that stays free without a heartbeat is a loss of unknown cause, which counts until it is known",
        _beating(1).with_lock_free_for(0.5),
        "EndAttempt 101 lost - Lost counted",
    ),
    (
        "a heartbeat since then is a process that lost its connection",
        _beating(1).with_lock_free_for(3),
        "Wait Running Running",
    ),
    (
        "a heartbeat that was the last before the lock came free is none since",
        _beating(0.5).with_lock_free_for(0.5),
        "EndAttempt 101 lost - Lost counted",
    ),
    (
        "an attempt without a memory limit is not near it",
        _beating(1, memory_limit_bytes=None).with_lock_free_for(0.5),
        "EndAttempt 101 lost - Lost counted",
    ),
    (
        "an attempt that has not told its memory is not near its limit",
        a_run()
        .attempted(an_attempt(memory_used_bytes=None))
        .with_pod(a_pod().running())
        .with_lock_free_for(0.5),
        "EndAttempt 101 lost - Lost counted",
    ),
    (
        "near the memory limit the kubelet has its say first",
        _beating(1, used_mebibytes=218).with_lock_free_for(0.5),
        "Wait Running Running until +2",
    ),
    (
        "near the memory limit the kubelet is not waited for without end",
        _beating(3, used_mebibytes=218).with_lock_free_for(2.5),
        "EndAttempt 101 lost - Lost counted",
    ),
    (
        "a free lock with the kubelet's word has its cause",
        _beating(1, used_mebibytes=250).with_lock_free_for(0.9).with_pod(a_pod().oom_killed()),
        "EndAttempt 101 lost oom Lost exit 137",
    ),
    (
        "a free lock while the pod is being deleted has the deletion's cause",
        _beating(1).with_lock_free_for(0.5).with_pod(a_pod().running().evicted()),
        "EndAttempt 101 lost drain Lost",
    ),
    (
        "an old heartbeat whose lock is held is a process that hangs",
        _beating(15),
        "EndAttempt 101 lost unresponsive Lost counted",
    ),
    (
        "an old heartbeat while the pod is being deleted has the deletion's cause",
        _beating(15).with_pod(a_pod().running().evicted()),
        "EndAttempt 101 lost drain Lost",
    ),
    ("a heartbeat that is a little late", _beating(14.9), "Wait Running Running"),
    (
        "an old heartbeat does not count while the operator could not see one",
        _beating(60).reachable_for(5),
        "Wait Running Running until +10",
    ),
    (
        "an old heartbeat counts once the operator could have seen one long enough",
        _beating(60).reachable_for(15),
        "EndAttempt 101 lost unresponsive Lost counted",
    ),
    (
        "a kubelet that is slow to say that the container runs changes nothing",
        at_work().with_pod(a_pod().scheduled().waiting()),
        "Wait Running Running",
    ),
    (
        "an attempt by hand is judged by its signs of life",
        _beating(16, pod=None, pod_uid=None),
        "EndAttempt 101 lost unresponsive Lost counted",
    ),
    (
        "an attempt that was not claimed has no signs to give",
        a_run().attempted(unclaimed()).with_pod(a_pod().running(ago(5))).with_lock_free_for(60),
        "Wait Pending Pending until +115",
    ),
)
def test_open_attempt_is_judged_by_its_signs_of_life(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
