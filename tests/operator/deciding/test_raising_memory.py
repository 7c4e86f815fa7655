"""An attempt that comes near its memory limit."""

from datetime import datetime

from support.builders import MEBIBYTE, Scenario, a_run, an_attempt, table, unclaimed
from support.clock import NOW, ago
from support.pods import PodBuilder, a_pod
from triage_operator.snapshot import Resize

_QUOTA = "pods is forbidden: exceeded quota: small"


def _using(mebibytes: int, pod: PodBuilder) -> Scenario:
    return a_run().attempted(an_attempt(memory_used_bytes=mebibytes * MEBIBYTE)).with_pod(pod)


def _having(asked: str, given: str | None) -> PodBuilder:
    return a_pod().running().with_memory(asked, given)


def _asked(
    mebibytes: int, at: datetime = NOW, refusal: str | None = None, *, binds_next: bool = False
) -> Resize:
    return Resize(limit_bytes=mebibytes * MEBIBYTE, at=at, refusal=refusal, binds_next=binds_next)


_NEAR = _using(200, _having("256Mi", "256Mi"))
_ASKED = _having("384Mi", "256Mi")


@table(
    ("a limit that is near is raised", _NEAR, "RaiseMemory 101 384Mi"),
    ("one that is not near stays", _using(190, _having("256Mi", "256Mi")), "Wait Running Running"),
    ("it is raised up to the cap", _NEAR.resuming(memory={"limit": "300Mi"}), "RaiseMemory 101 300Mi"),
    (
        "at the cap nothing is done",
        _using(1020, _having("1Gi", "1Gi")),
        "Wait Running Running",
    ),
    ("with factor 1 nothing is done", _NEAR.resuming(memory={"factor": 1}), "Wait Running Running"),
    ("without its agent nothing is known of a cap", _NEAR.without_agent(), "Wait Running Running"),
    ("a pod without a limit is left alone", _using(200, a_pod().running()), "Wait Running Running"),
    (
        "what a node gives counts, though the row does not hold it yet",
        _using(200, _having("384Mi", "384Mi")).where(resize=_asked(384, ago(2))),
        "Wait Running Running",
    ),
    (
        "what was given can be near in turn",
        _using(300, _having("384Mi", "384Mi")).where(resize=_asked(384, ago(2))),
        "RaiseMemory 101 576Mi",
    ),
    (
        "it is asked for once, and waited for",
        _using(250, _ASKED).where(resize=_asked(384, ago(1))),
        "Wait Running Running until +4",
    ),
    (
        "another operator asked: this one asks for the same again",
        _using(250, _ASKED),
        "RaiseMemory 101 384Mi",
    ),
    (
        "a node that has accepted has its time",
        _using(250, _ASKED.resize_in_progress()).where(resize=_asked(384, ago(20))),
        "Wait Running Running",
    ),
    (
        "a node that failed has not",
        _using(250, _ASKED.resize_in_progress(reason="Error", message="no")).where(
            resize=_asked(384, ago(5))
        ),
        "RequestHandoff 101 short_of_memory",
    ),
    (
        "a node that does not answer has not",
        _using(250, _ASKED).where(resize=_asked(384, ago(5))),
        "RequestHandoff 101 short_of_memory",
    ),
    (
        "a node without room may find some",
        _using(250, _ASKED.resize_pending("Deferred", "no room")).where(resize=_asked(384, ago(2))),
        "Wait Running Running until +3",
    ),
    (
        "but not for ever",
        _using(250, _ASKED.resize_pending("Deferred", "no room")).where(resize=_asked(384, ago(5))),
        "RequestHandoff 101 short_of_memory",
    ),
    (
        "without need there is no hurry",
        _using(100, _ASKED.resize_pending("Deferred", "no room")).where(resize=_asked(384, ago(5))),
        "Wait Running Running",
    ),
    (
        "a node that never has room is left at once",
        _using(250, _ASKED.resize_pending("Infeasible", "too small")).where(resize=_asked(384, ago(1))),
        "RequestHandoff 101 short_of_memory",
    ),
    (
        "a node that cannot raise anything is left at once",
        _using(250, _having("256Mi", None)),
        "RequestHandoff 101 short_of_memory",
    ),
    (
        "an API server that cannot either",
        _NEAR.where(resize=_asked(384, refusal="PATCH pods/run-a1/resize: not found")),
        "RequestHandoff 101 short_of_memory",
    ),
    (
        "what would refuse the next pod as well changes nothing",
        _NEAR.where(resize=_asked(384, ago(9), _QUOTA, binds_next=True)),
        "Wait Running MemoryRefused",
    ),
    (
        "an earlier refusal says nothing of another limit",
        _NEAR.resuming(memory={"limit": "300Mi"}).where(resize=_asked(384, refusal=_QUOTA, binds_next=True)),
        "RaiseMemory 101 300Mi",
    ),
    (
        "one that is to hand off needs no more",
        a_run()
        .attempted(an_attempt(memory_used_bytes=250 * MEBIBYTE, handoff_requested_at=ago(1)))
        .with_pod(_having("256Mi", "256Mi")),
        "Wait Running HandingOff",
    ),
    (
        "one that is evicted already is left alone",
        _using(250, _having("256Mi", "256Mi").evicted()),
        "Wait Running HandingOff until +32",
    ),
    (
        "one that has not begun is left alone",
        a_run()
        .attempted(unclaimed(memory_used_bytes=250 * MEBIBYTE))
        .with_pod(a_pod().running(ago(5)).with_memory("256Mi", "256Mi")),
        "Wait Pending Pending until +115",
    ),
)
def test_memory_near_its_limit(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_words_say_what_is_used_and_what_stands_in_the_way() -> None:
    assert _NEAR.action().message == (
        "Attempt 1 uses 200 MiB of memory: its limit is to be raised from 256Mi to 384Mi."
    )
    infeasible = _ASKED.resize_pending("Infeasible", "Node didn't have enough capacity")
    assert _using(250, infeasible).where(resize=_asked(384)).action().message == (
        "Attempt 1 is near its memory limit, and is to hand off to a bigger pod."
        " Infeasible: Node didn't have enough capacity"
    )
    assert _NEAR.where(resize=_asked(384, refusal=_QUOTA, binds_next=True)).action().message == (
        f"The memory limit of attempt 1 stays as it is: {_QUOTA}"
    )
