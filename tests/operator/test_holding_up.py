"""The status of a run about which nothing can be decided."""

from datetime import UTC, datetime, timedelta
from typing import Any

from triage_operator.holding_up import held_up
from triage_operator.reasons import Reason

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _held(
    run: dict[str, Any], reason: Reason = Reason.DATABASE_UNREACHABLE, minutes: int = 0
) -> dict[str, Any]:
    return held_up(run, reason=reason, message="Nobody answers.", now=NOW + timedelta(minutes=minutes))


def test_a_run_that_was_never_seen_is_pending_and_says_what_holds_it_up() -> None:
    status = _held({"metadata": {"generation": 1}})
    assert status["phase"] == "Pending"
    (condition,) = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "DatabaseUnreachable")
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_nothing_else_of_a_status_is_lost() -> None:
    finished = {"type": "Finished", "status": "False", "reason": "Running", "lastTransitionTime": "x"}
    before = {"phase": "Running", "attempt": 2, "conditions": [finished]}
    status = _held({"metadata": {}, "status": before})
    assert (status["phase"], status["attempt"]) == ("Running", 2)
    assert finished in status["conditions"]


def test_the_same_again_is_equal_whatever_the_time() -> None:
    run = {"metadata": {"generation": 1}}
    status = _held(run)
    assert _held({**run, "status": status}, minutes=5) == status


def test_another_reason_does_not_change_since_when_it_is_held_up() -> None:
    run = {"metadata": {"generation": 1}}
    changed = _held({**run, "status": _held(run)}, reason=Reason.BAD_CONFIGURATION, minutes=5)
    (condition,) = changed["conditions"]
    assert condition["reason"] == "BadConfiguration"
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"
