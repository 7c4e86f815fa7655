"""The status of a pod as a pure function of its containers' states."""

from datetime import UTC, datetime

import pytest

from support.nodes import Json
from triage_local.kubelet.resizing import Sizes
from triage_local.kubelet.statuses import PodFacts, build_status, running, terminated, waiting

BEFORE, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
POD: Json = {"spec": {"containers": [{"name": "agent", "image": "a"}, {"name": "sidecar", "image": "b"}]}}
RUNNING = running(BEFORE)
DONE = terminated(exit_code=0, reason="Completed", started=BEFORE, finished=NOW)
KILLED = terminated(exit_code=137, reason="Error", started=BEFORE, finished=NOW)
BLOCKED = waiting("ErrImagePull", "no")


def _status(
    agent: Json,
    sidecar: Json,
    *,
    previous: Json | None = None,
    now: datetime = NOW,
    sizes: Sizes | None = None,
) -> Json:
    facts = PodFacts(
        host_ip="127.0.0.1",
        pod_ip="127.1.0.1",
        start_time="2026-01-01T00:00:00Z",
        init_states={},
        states={"agent": agent, "sidecar": sidecar},
        container_ids={},
        sizes=sizes or Sizes(POD, {"memory": "1Gi"}, lambda: 0),
    )
    return build_status(POD, facts, previous or {}, now)


@pytest.mark.parametrize(
    ("agent", "sidecar", "phase", "ready"),
    [
        (BLOCKED, RUNNING, "Pending", "ContainersNotReady"),
        (RUNNING, RUNNING, "Running", None),
        (KILLED, RUNNING, "Running", "ContainersNotReady"),
        (DONE, DONE, "Succeeded", "PodCompleted"),
        (DONE, KILLED, "Failed", "PodFailed"),
    ],
)
def test_phase_and_readiness(agent: Json, sidecar: Json, phase: str, ready: str | None) -> None:
    status = _status(agent, sidecar)
    assert status["phase"] == phase
    condition = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert condition["reason"] == ready
    assert condition["status"] == ("True" if ready is None else "False")


def test_a_transition_has_the_time_of_the_change_and_no_other() -> None:
    first = _status(RUNNING, RUNNING, now=BEFORE)
    assert _status(RUNNING, RUNNING, previous=first) == first
    second = _status(KILLED, RUNNING, previous=first)
    times = {each["type"]: each["lastTransitionTime"] for each in second["conditions"]}
    assert times["Ready"] == times["ContainersReady"] == "2026-01-02T00:00:00Z"
    assert times["Initialized"] == times["PodScheduled"] == "2026-01-01T00:00:00Z"


def test_what_was_never_started_has_the_epoch_for_times() -> None:
    state = terminated(exit_code=128, reason="StartError", message="exec")["terminated"]
    assert state["startedAt"] == state["finishedAt"] == "1970-01-01T00:00:00Z"
