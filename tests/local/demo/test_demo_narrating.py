"""What a change of a run is told as."""

from typing import Any

import pytest

from triage_local.demo.narrating import told

Json = dict[str, Any]

FIRST = {"epoch": 1, "node": "node-1", "memoryLimit": "256Mi"}
SECOND = {"epoch": 2, "node": "node-2"}


def a_run(**status: Any) -> Json:
    return {"metadata": {"name": "tokens"}, "status": status}


RUNNING = a_run(phase="Running", attempts=[FIRST])


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        pytest.param(None, {"metadata": {"name": "tokens"}}, [], id="a run without a status"),
        pytest.param(None, a_run(phase="Pending"), ["is Pending"], id="its first phase"),
        pytest.param(RUNNING, RUNNING, [], id="nothing new"),
        pytest.param(
            a_run(phase="Running", attempts=[{"epoch": 1}]),
            RUNNING,
            ["attempt 1 is on node-1 with 256Mi of memory"],
            id="a node for the attempt",
        ),
        pytest.param(
            RUNNING,
            a_run(
                phase="Recovering",
                attempts=[{**FIRST, "cause": "oom", "message": "The container ran out of memory."}, SECOND],
            ),
            [
                "attempt 1 is lost, cause: oom (The container ran out of memory.)",
                "attempt 2 is on node-2",
                "is Recovering",
            ],
            id="a loss and what follows it",
        ),
        pytest.param(
            RUNNING,
            a_run(
                phase="Waiting",
                attempts=[FIRST],
                waitingFor=[{"tool": "file_issue", "attempt": 1, "why": "Its end is not known."}],
            ),
            ["asks about a call of file_issue in attempt 1: Its end is not known.", "is Waiting"],
            id="a call in doubt",
        ),
        pytest.param(
            RUNNING,
            a_run(phase="Succeeded", attempts=[FIRST], issue="7"),
            ["is Succeeded, issue 7"],
            id="the end, with its issue",
        ),
    ],
)
def test_only_what_is_new_is_told(before: Json | None, after: Json, lines: list[str]) -> None:
    assert list(told(before, after)) == lines


def test_the_last_words_of_an_agent_are_cut() -> None:
    lost = a_run(phase="Running", attempts=[{**FIRST, "cause": "app_error", "message": "words " * 100}])
    (line,) = told(RUNNING, lost)
    assert line.endswith(" ...)")
    assert len(line) < 120
