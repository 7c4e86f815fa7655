"""What a pod's end, its deletion and its absence mean for the open attempt."""

from support.builders import Scenario, a_run, an_attempt, at_work, podless, table, unclaimed
from support.clock import NOW, ago
from support.pods import a_pod
from triage_contract.states import Verdict

_GONE = a_run().attempted(an_attempt())


@table(
    (
        "killed by SIGKILL counts",
        at_work().with_pod(a_pod().exited(137)),
        "EndAttempt 101 lost sigkill Lost exit 137 counted",
    ),
    (
        "out of memory below the cap does not count",
        at_work().with_pod(a_pod().oom_killed()),
        "EndAttempt 101 lost oom Lost exit 137",
    ),
    (
        "out of memory at the cap counts",
        a_run().attempted(an_attempt(memory_limit_bytes=1024**3)).with_pod(a_pod().oom_killed()),
        "EndAttempt 101 lost oom Lost exit 137 counted",
    ),
    (
        "out of memory without a limit to raise counts",
        a_run().attempted(an_attempt(memory_limit_bytes=None)).with_pod(a_pod().oom_killed()),
        "EndAttempt 101 lost oom Lost exit 137 counted",
    ),
    (
        "drained and gone from its node, unreleased",
        at_work().with_pod(a_pod().exited(137).evicted()),
        "EndAttempt 101 lost drain Lost exit 137",
    ),
    (
        "an error of its own counts",
        at_work().with_pod(a_pod().exited(1)),
        "EndAttempt 101 lost app_error Lost exit 1 counted",
    ),
    (
        "exit 0 without a word counts",
        at_work().with_pod(a_pod().exited(0)),
        "EndAttempt 101 lost exit0_unfinished Lost exit 0 counted",
    ),
    (
        "the agent container decides while a sidecar keeps the pod running",
        at_work().with_pod(a_pod().exited(137).with_sidecar()),
        "EndAttempt 101 lost sigkill Lost exit 137 counted",
    ),
    (
        "an attempt that could not be configured",
        a_run().attempted(unclaimed()).with_pod(a_pod().exited(86)),
        "EndAttempt 101 bad_configuration bad_config Lost exit 86",
    ),
    (
        "an attempt that found no database does not count",
        at_work().with_pod(a_pod().exited(87)),
        "EndAttempt 101 lost no_database Lost exit 87",
    ),
    (
        "an attempt that was fenced although it is the newest does not count",
        at_work().with_pod(a_pod().exited(84)),
        "EndAttempt 101 lost - Lost exit 84",
    ),
    (
        "an attempt that found its invocation finished",
        at_work().with_pod(a_pod().exited(82)),
        "EndAttempt 101 finished - Lost exit 82",
    ),
    (
        "a pod that its node refused never ran",
        a_run().attempted(unclaimed()).with_pod(a_pod().scheduled().failed("OutOfcpu")),
        "EndAttempt 101 lost rejected Lost",
    ),
    (
        "a pod that ran is not taken for refused when its kubelet restarts",
        at_work().with_pod(a_pod().scheduled().failed("OutOfcpu")),
        "EndAttempt 101 lost status_unknown Lost",
    ),
    (
        "a pod deleted before its container started is not waited for",
        a_run().attempted(unclaimed()).with_pod(a_pod().scheduled().waiting().deleted()),
        "EndAttempt 101 lost deleted_pending Lost",
    ),
    (
        "a deletion under way is waited for until two seconds after its grace period",
        at_work().with_pod(a_pod().running().deleted()),
        "Wait Running HandingOff until +32",
    ),
    (
        "a deletion whose grace period is over is a loss although the process still runs",
        at_work().with_pod(a_pod().running().deleted(ago(32))),
        "EndAttempt 101 lost deleted Lost",
    ),
    (
        "a drain whose grace period is over is a loss although the process still runs",
        at_work().with_pod(a_pod().running().evicted(ago(32))),
        "EndAttempt 101 lost drain Lost",
    ),
    ("gone unseen has vanished", _GONE, "EndAttempt 101 lost vanished Lost"),
    (
        "gone before its claim has vanished too",
        a_run().attempted(unclaimed()),
        "EndAttempt 101 lost vanished Lost",
    ),
    (
        "gone before its UID was recorded, but claimed, has vanished",
        a_run().attempted(podless(claimed_at=ago(1))),
        "EndAttempt 101 lost vanished Lost",
    ),
    (
        "gone unseen after a SIGTERM that the process recorded",
        a_run().attempted(an_attempt(sigterm_at=ago(1))),
        "EndAttempt 101 lost sigterm Lost",
    ),
    (
        "gone, last seen on its way out",
        _GONE.with_last_pod(a_pod().running().deleted()),
        "EndAttempt 101 lost deleted Lost",
    ),
    (
        "gone, last seen when its eviction was announced",
        _GONE.with_last_pod(a_pod().running().disrupted("EvictionByEvictionAPI")),
        "EndAttempt 101 lost drain Lost",
    ),
    (
        "gone, last seen killed",
        _GONE.with_last_pod(a_pod().exited(137)),
        "EndAttempt 101 lost sigkill Lost counted",
    ),
    (
        "gone, last seen well, has vanished",
        _GONE.with_last_pod(a_pod().running()),
        "EndAttempt 101 lost vanished Lost",
    ),
    (
        "gone, last seen pending",
        a_run().attempted(podless()).with_last_pod(a_pod().scheduled()),
        "EndAttempt 101 lost deleted_pending Lost",
    ),
    (
        "gone, last seen pending although it was claimed",
        _GONE.with_last_pod(a_pod().scheduled()),
        "EndAttempt 101 lost deleted Lost",
    ),
    (
        "a copy of its pod is not its pod",
        at_work().attempted(an_attempt(pod_uid="the-first")),
        "EndAttempt 101 lost vanished Lost",
    ),
    (
        "an attempt by hand has no pod to lose",
        a_run().attempted(an_attempt(pod=None, pod_uid=None)),
        "Wait Running ByHand",
    ),
    (
        "a disruption that was announced and did not come changes nothing",
        at_work().with_pod(a_pod().running().disrupted("EvictionByEvictionAPI")),
        "Wait Running Running",
    ),
)
def test_open_attempt_is_judged_by_its_pod(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_end_is_told_with_the_containers_last_words() -> None:
    pod = a_pod().exited(86, message='{"outcome": "bad_configuration", "message": "no module named docs"}')

    action = a_run().attempted(unclaimed()).with_pod(pod).action()

    assert action.message == "The agent container ended with exit code 86: no module named docs."


def test_verdict_plays_no_part_while_an_attempt_is_open() -> None:
    scenario = at_work().with_pod(a_pod().exited(0, at=NOW))
    verdicts = list(Verdict)

    decisions = {scenario.judged(verdict).decides() for verdict in verdicts}

    assert decisions == {"EndAttempt 101 lost exit0_unfinished Lost exit 0 counted"}
