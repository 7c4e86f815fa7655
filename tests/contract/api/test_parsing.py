"""From stored objects to models: what is kept, what is defaulted, what an error says."""

from typing import Any

import pytest

from triage_contract.api import AttemptStatus, RunStatus, parse_agent, parse_run
from triage_contract.exceptions import ApiError
from triage_contract.states import Phase, ToolKind

METADATA = {
    "name": "tokens",
    "namespace": "docs",
    "uid": "8f6f2c6e-37a5-4f5e-9a5c-0d9b1c6b7f10",
    "creationTimestamp": "2026-03-01T12:00:00Z",
}
DATABASE = {"urlSecretRef": {"name": "triage-database", "key": "url"}}


def a_run(status: object = None, **spec: object) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": {"report": "Tokens do expire.", **spec}, "status": status or {}}


def an_agent(**spec: object) -> dict[str, Any]:
    return {"metadata": METADATA, "spec": {"image": "docs-triage:1", "database": DATABASE, **spec}}


def test_a_run_that_says_only_what_to_do_gets_the_defaults() -> None:
    spec = parse_run(a_run()).spec
    assert (spec.agent_ref.name, spec.suspend, spec.cancel) == ("default", False, False)
    assert (spec.deadline_seconds, spec.start_deadline_seconds, spec.ttl_seconds_after_finished) == (
        None,
    ) * 3


def test_an_agent_that_says_only_what_it_must_gets_the_defaults() -> None:
    spec = parse_agent(an_agent()).spec
    assert spec.app == "triage_agent.docs_triage.agent:app"
    assert (spec.model, spec.tracker, spec.docs, spec.tools) == (None, None, None, {})
    assert (spec.resume.max_no_progress, spec.resume.max_attempts) == (3, 20)
    backoff, memory = spec.resume.backoff, spec.resume.memory
    assert (backoff.initial_seconds, backoff.max_seconds, backoff.factor) == (2, 300, 2)
    assert (memory.factor, memory.limit) == (1.5, None)
    assert spec.concurrency.max_running is None


def test_tools_are_kinds_and_quantities_are_texts() -> None:
    spec = parse_agent(
        an_agent(tools={"read_page": "ReadOnly"}, resources={"limits": {"cpu": 1, "memory": "1Gi"}})
    ).spec
    assert spec.tools == {"read_page": ToolKind.READ_ONLY}
    assert spec.resources.limits == {"cpu": "1", "memory": "1Gi"}


def test_fields_of_a_newer_schema_are_left_out() -> None:
    run = parse_run(a_run(status={"phase": "Running", "mood": "good"}, priority=7))
    assert run.status.phase is Phase.RUNNING
    assert run.spec == parse_run(a_run()).spec


@pytest.mark.parametrize("status", [{"phase": "Sleeping"}, {"attempts": [{"epoch": "one"}]}, "gone", [], 7])
def test_a_status_that_does_not_fit_counts_as_lost(status: object) -> None:
    assert parse_run(a_run(status=status)) == parse_run(a_run())


def test_what_was_read_is_written_again() -> None:
    raw = {
        "phase": "Recovering",
        "conditions": [
            {
                "type": "Finished",
                "status": "False",
                "reason": "Recovering",
                "message": "",
                "lastTransitionTime": "2026-03-01T12:00:05Z",
                "observedGeneration": 1,
            }
        ],
        "attempt": 2,
        "attempts": [{"epoch": 1, "cause": "oom", "outcome": "lost", "memoryLimit": "256Mi"}, {"epoch": 2}],
        "resumes": 1,
        "noProgress": 0,
        "toolCalls": {"begun": 3, "done": 2, "suppressed": 1},
        "waitingFor": [
            {
                "call": "adk-1",
                "tool": "pay",
                "attempt": 1,
                "arguments": '{"cents": 5}',
                "why": "It may have happened.",
            }
        ],
        "lastCause": "oom",
        "recoverySeconds": 1.25,
    }
    assert parse_run(a_run(status=raw)).status.to_json() == raw


def test_a_status_cuts_what_others_said() -> None:
    status = RunStatus(output="é" * 20_000, attempts=(AttemptStatus(epoch=1, message="m" * 2000),))
    assert status.output == "é" * 16384
    assert status.attempts[0].message == "m" * 1024


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"report": ""}, "spec.report: String should have at least 1 character"),
        ({"report": " \n\t"}, "spec.report: report must not be blank"),
        ({"report": "x" * 65537}, "spec.report: String should have at most 65536 characters"),
        ({"report": "a\0b"}, "spec.report: report must hold no NUL"),
        ({"report": 7}, "spec.report: Input should be a valid string"),
        ({"report": "\ud800"}, "Invalid JSON"),
        ({"agentRef": {"name": ""}}, "spec.agentRef.name: String should have at least 1 character"),
        ({"deadlineSeconds": 0}, "spec.deadlineSeconds: Input should be greater than or equal to 1"),
        ({"deadlineSeconds": "60"}, "spec.deadlineSeconds: Input should be a valid integer"),
        ({"suspend": "yes"}, "spec.suspend: Input should be a valid boolean"),
    ],
)
def test_a_bad_run_is_refused_in_one_line_with_the_field(spec: dict[str, object], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_run(a_run(**spec))
    assert str(caught.value).startswith("TriageRun docs/tokens: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"image": None}, "spec.image: Input should be a valid string"),
        ({"database": None}, "spec.database: Input should be an object"),
        ({"app": "agent.py"}, "spec.app: app must be module:attribute"),
        ({"tracker": {}}, "spec.tracker: set exactly one of postgres, file, github"),
        (
            {"tracker": {"postgres": {}, "file": {"path": "/f"}}},
            "spec.tracker: set exactly one of postgres, file, github",
        ),
        ({"docs": {"path": "pages"}}, "spec.docs.path: the path must be absolute"),
        ({"tools": {"f": "Sometimes"}}, "spec.tools.f: Input should be 'ReadOnly', 'Idempotent'"),
        ({"resources": {"limits": {"memory": "1 Gi"}}}, "spec.resources.limits.memory: not a quantity"),
        (
            {"resources": {"limits": {"memory": True}}},
            "spec.resources.limits.memory: Input should be a valid string",
        ),
        (
            {"model": {"name": "m", "baseUrl": "http://token@h"}},
            "spec.model.baseUrl: baseUrl must be",
        ),
        (
            {"resume": {"backoff": {"initialSeconds": 10, "maxSeconds": 5}}},
            "spec.resume.backoff: initialSeconds must not exceed maxSeconds",
        ),
    ],
)
def test_a_bad_agent_is_refused_in_one_line_with_the_field(spec: dict[str, object], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse_agent(an_agent(**spec))
    assert str(caught.value).startswith("TriageAgent docs/tokens: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_each_fault_is_named_and_no_value_is_shown() -> None:
    with pytest.raises(ApiError) as caught:
        parse_run(a_run(report="", deadlineSeconds="hunter2"))
    assert "spec.report: " in str(caught.value)
    assert "spec.deadlineSeconds: " in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "raw", [{}, {"metadata": None, "spec": None}, {"metadata": {"name": "x"}, "spec": {}}]
)
def test_something_else_than_an_object_of_ours_is_refused(raw: dict[str, Any]) -> None:
    for parse in (parse_run, parse_agent):
        with pytest.raises(ApiError, match="metadata"):
            parse(raw)
