"""What cells of tables say: ages, paths into objects, the status of a pod."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from triage_local.apiserver.columns import PODS, age
from triage_local.apiserver.field_errors import quoted
from triage_local.apiserver.jsonpaths import JsonPathError, found
from triage_local.apiserver.objects import Json, timestamp
from triage_local.apiserver.quantities import amount

OBJECT = {
    "spec": {"size": 3, "a.b": "dotted"},
    "status": {
        "attempts": [{"cause": "oom"}, {"cause": "drain"}],
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}],
    },
}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (9 * 3600 + 60, "9h"),
        (3 * 86400, "3d"),
        (3 * 86400 + 3600, "3d1h"),
        (30 * 86400, "30d"),
        (800 * 86400, "2y70d"),
        (9 * 365 * 86400, "9y"),
    ],
)
def test_an_age_is_abbreviated(seconds: int, text: str) -> None:
    # The age of a time with whole seconds is up to a second more.
    assert age(timestamp(datetime.now(UTC) - timedelta(seconds=seconds))) in (text, text.replace("0s", "1s"))


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.size", [3]),
        ("{.spec.size}", [3]),
        (".spec['a.b']", ["dotted"]),
        (r".spec.a\.b", ["dotted"]),
        (".status.attempts[0].cause", ["oom"]),
        (".status.attempts[-1].cause", ["drain"]),
        (".status.attempts[-1:].cause", ["drain"]),
        (".status.attempts[*].cause", ["oom", "drain"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type!='Ready')].status", ["False"]),
        (".status.attempts[7].cause", []),
        (".nothing.at.all", []),
        (".spec.size.more", []),
    ],
)
def test_a_path_leads_to_values(path: str, values: list[Any]) -> None:
    assert found(path, OBJECT) == values


def test_a_path_that_is_not_understood_is_an_error() -> None:
    with pytest.raises(JsonPathError, match="unsupported at 7"):
        found(".status[?(@.a)]", OBJECT)


def a_pod(status: Json, **metadata: str) -> Json:
    return {"metadata": {"name": "one", **metadata}, "spec": {"containers": [{}]}, "status": status}


def containers(state: Json, *, ready: bool = False) -> list[Json]:
    return [{"name": "agent", "state": state, "ready": ready, "restartCount": 0}]


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        (a_pod({"phase": "Pending"}), "Pending"),
        (
            a_pod({"phase": "Running", "containerStatuses": containers({"running": {}}, ready=True)}),
            "Running",
        ),
        (
            a_pod(
                {
                    "phase": "Pending",
                    "containerStatuses": containers({"waiting": {"reason": "ImagePullBackOff"}}),
                }
            ),
            "ImagePullBackOff",
        ),
        (
            a_pod(
                {
                    "phase": "Failed",
                    "containerStatuses": containers({"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
                }
            ),
            "OOMKilled",
        ),
        (
            a_pod({"phase": "Failed", "containerStatuses": containers({"terminated": {"exitCode": 3}})}),
            "ExitCode:3",
        ),
        (a_pod({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
        (a_pod({"phase": "Running"}, deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating"),
        (a_pod({"phase": "Failed"}, deletionTimestamp="2026-01-01T00:00:00Z"), "Failed"),
    ],
)
def test_a_pod_s_status_is_one_word(pod: Json, word: str) -> None:
    column = next(column for column in PODS if column.name == "Status")
    assert column.cell(pod) == word


@pytest.mark.parametrize(
    ("quantity", "number"),
    [("1", 1), (2, 2), ("500m", "0.5"), ("1Ki", 1024), ("1.5Gi", 1610612736), ("1e3", 1000)],
)
def test_a_quantity_is_a_number(quantity: str | int, number: str | int) -> None:
    assert amount(quantity) == amount(number)


def test_what_is_no_quantity_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a quantity: '1 GB'"):
        amount("1 GB")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a"b\\', r'"a\"b\\"'),
        ("\n\t\x00", r'"\n\t\x00"'),
        ("ü ✓ 🙂", '"ü ✓ 🙂"'),
        ("\u2028\U000e0001", r'"\u2028\U000e0001"'),
    ],
)
def test_text_is_quoted_as_go_does_it(text: str, shown: str) -> None:
    assert quoted(text) == shown
