"""The revision of an agent: it changes with what its pods get, and with nothing else."""

from typing import Any

import pytest

from support.builders import a_triage_agent
from triage_operator.revision import revision_of


def _revision(**spec: Any) -> str:
    return revision_of(a_triage_agent(**spec))


def test_revision_is_the_same_in_every_release() -> None:
    assert _revision() == "16e1956a82"
    assert _revision(docs={"path": "/docs"}, tools={"b": "ReadOnly", "a": "Idempotent"}) == "b83564cde3"


@pytest.mark.parametrize(
    "spec",
    [
        {"image": "docs-triage:2"},
        {"app": "my_agents.support:app"},
        {"model": {"name": "gemini-3.8-flash"}},
        {"database": {"urlSecretRef": {"name": "another", "key": "url"}}},
        {
            "tracker": {
                "github": {"repository": "acme/docs", "tokenSecretRef": {"name": "it", "key": "token"}}
            }
        },
        {"docs": {"path": "/docs"}},
        {"tools": {"deploy": "Idempotent"}},
        {"resources": {"limits": {"memory": "512Mi"}}},
        {"podTemplate": {"metadata": {"annotations": {"restartedAt": "2026-03-01T12:00:00Z"}}}},
        {"podTemplate": {"spec": {"priorityClassName": "low"}}},
        {"resume": {"inDoubt": "Retry"}},
    ],
    ids=lambda spec: "-".join(spec),
)
def test_each_field_that_pods_are_made_of_makes_another_revision(spec: dict[str, Any]) -> None:
    assert _revision(**spec) != _revision()


@pytest.mark.parametrize(
    "spec",
    [
        {"resume": {"maxAttempts": 3, "memory": {"factor": 3}}},
        {"concurrency": {"maxRunning": 1}},
        {"rollout": {"strategy": "Restart"}},
        {
            "app": "triage_agent.docs_triage.agent:app",
            "tools": {},
            "podTemplate": {"metadata": {"labels": {}}},
        },
    ],
    ids=["resume", "concurrency", "rollout", "defaults"],
)
def test_what_pods_do_not_get_makes_no_other_revision(spec: dict[str, Any]) -> None:
    assert _revision(**spec) == _revision()


def test_the_order_of_keys_does_not_matter() -> None:
    one, other = {"a": "ReadOnly", "b": "ReadOnly"}, {"b": "ReadOnly", "a": "ReadOnly"}
    assert _revision(tools=one) == _revision(tools=other)
