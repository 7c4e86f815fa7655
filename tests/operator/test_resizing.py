"""Memory of a running pod: read from what a kubelet writes, and asked for in a patch."""

from typing import Any

import pytest

from support.builders import MEBIBYTE
from support.pods import PodBuilder, a_pod
from triage_operator.resizing import PodMemory, build_resize, raised_beyond, read_memory


def _memory(**fields: Any) -> PodMemory:
    memory = {"asked_bytes": 384 * MEBIBYTE, "given_bytes": 256 * MEBIBYTE, "obstacle": ""}
    return PodMemory(**{**memory, "is_infeasible": False, "is_accepted": False, **fields})


_ASKED = a_pod().running().with_memory("384Mi", "256Mi")


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_ASKED, _memory(), id="asked, and nothing said"),
        pytest.param(_ASKED.resize_in_progress(), _memory(is_accepted=True), id="about to be given"),
        pytest.param(
            _ASKED.resize_in_progress(reason="Error", message="no such cgroup"),
            _memory(obstacle="Error: no such cgroup"),
            id="tried, and failed",
        ),
        pytest.param(
            _ASKED.resize_pending("Deferred", "Node didn't have enough resource: memory"),
            _memory(obstacle="Deferred: Node didn't have enough resource: memory"),
            id="no room now",
        ),
        pytest.param(
            _ASKED.resize_pending("Infeasible", "Node didn't have enough capacity: memory"),
            _memory(obstacle="Infeasible: Node didn't have enough capacity: memory", is_infeasible=True),
            id="never room",
        ),
        pytest.param(
            a_pod().running().with_memory("402653184", "384Mi"),
            _memory(given_bytes=384 * MEBIBYTE),
            id="given",
        ),
        pytest.param(
            a_pod().running().with_memory("384Mi", None),
            _memory(given_bytes=None),
            id="a node that does not say what it gives",
        ),
        pytest.param(
            a_pod().exited(137, "OOMKilled").with_memory("384Mi", "384Mi"),
            _memory(given_bytes=None),
            id="given too late",
        ),
        pytest.param(a_pod().running(), None, id="no limit"),
        pytest.param(a_pod().running().with_memory("0", "0"), None, id="a limit of nothing is none"),
    ],
)
def test_memory_is_read_from_a_pod(pod: PodBuilder, expected: PodMemory | None) -> None:
    assert read_memory(pod.json) == expected


@pytest.mark.parametrize(
    ("given", "had", "expected"),
    [
        ("384Mi", 256, 384),
        ("384Mi", 384, None),
        ("256Mi", 384, None),
        ("384Mi", None, None),
        (None, 256, None),
    ],
)
def test_raise_is_seen_once_it_is_given(given: str | None, had: int | None, expected: int | None) -> None:
    pod = a_pod().running().with_memory("512Mi", given)

    raised = raised_beyond(pod.json, None if had is None else had * MEBIBYTE)

    assert raised == (None if expected is None else expected * MEBIBYTE)


@pytest.mark.parametrize(
    ("limit", "request_", "expected"),
    [
        pytest.param("256Mi", "256Mi", "384Mi", id="a guaranteed pod stays one"),
        pytest.param("256Mi", "100Mi", "150Mi", id="the request grows by the same factor"),
        pytest.param("200000001", "200000001", "384Mi", id="an odd limit too"),
        pytest.param("384Mi", "150Mi", "150Mi", id="asking again changes nothing"),
        pytest.param("256Mi", None, None, id="no request stays none"),
    ],
)
def test_patch_asks_for_limit_and_request(limit: str, request_: str | None, expected: str | None) -> None:
    pod = a_pod().running().with_memory(limit, limit, request_)
    asked: dict[str, Any] = {"limits": {"memory": "384Mi"}}
    if expected is not None:
        asked["requests"] = {"memory": expected}

    assert build_resize(pod.json, 384 * MEBIBYTE) == {
        "metadata": {"uid": "pod-uid-1"},
        "spec": {"containers": [{"name": "agent", "resources": asked}]},
    }
