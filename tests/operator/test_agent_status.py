"""The status of an agent."""

from collections.abc import Collection

import pytest

from support.builders import a_triage_agent
from support.clock import NOW, ago
from triage_contract.api import AgentStatus, TriageAgent, parse_agent
from triage_operator.agent_status import build_agent_status


def _status(agent: TriageAgent, undeclared: Collection[str] | None = None, age: float = 0) -> AgentStatus:
    return build_agent_status(agent, running=3, undeclared=undeclared, now=ago(age))


def _stored(agent: TriageAgent, status: AgentStatus) -> TriageAgent:
    return parse_agent({**agent.to_json(), "status": status.to_json()})


def test_agent_that_is_well() -> None:
    status = _status(a_triage_agent())

    (ready,) = status.conditions
    assert (ready.type, ready.status, ready.reason) == ("Ready", "True", "Ready")
    assert (status.image, status.running, status.observed_generation) == ("docs-triage:1", 3, 0)


def test_agent_whose_template_cannot_be_merged_names_the_field() -> None:
    (ready,) = _status(a_triage_agent(podTemplate={"spec": {"restartPolicy": "Always"}})).conditions

    assert (ready.status, ready.reason) == ("False", "BadAgent")
    assert ready.message.startswith("spec.podTemplate.spec.restartPolicy: ")


@pytest.mark.parametrize(
    ("undeclared", "status", "reason", "message"),
    [
        ([], "True", "ToolsDeclared", "Each known tool has a declared kind."),
        (
            ["send_mail", "deploy"],
            "False",
            "ToolsUndeclared",
            "Of no declared kind: deploy, send_mail. A call that began and whose end is not known waits for a decision"
            " (resume.inDoubt: Park).",
        ),
    ],
)
def test_tools(undeclared: list[str], status: str, reason: str, message: str) -> None:
    _, tools = _status(a_triage_agent(), undeclared).conditions

    assert (tools.type, tools.status, tools.reason, tools.message) == (
        "ToolsDeclared",
        status,
        reason,
        message,
    )


def test_many_tools_are_counted() -> None:
    _, tools = _status(a_triage_agent(), [f"tool_{number:03}" for number in range(200)]).conditions

    assert "tool_019 and 180 more. " in tools.message


def test_tool_that_was_declared_since_is_none_of_them() -> None:
    agent = a_triage_agent(tools={"deploy": "Idempotent", "send_mail": "Undeclared"})

    _, tools = _status(agent, ["deploy", "send_mail"]).conditions

    assert tools.message.startswith("Of no declared kind: send_mail. ")


@pytest.mark.parametrize(
    ("in_doubt", "said"), [("Retry", "may happen twice"), ("Fail", "makes its run fail")]
)
def test_condition_says_what_becomes_of_calls_in_doubt(in_doubt: str, said: str) -> None:
    _, tools = _status(a_triage_agent(resume={"inDoubt": in_doubt}), ["deploy"]).conditions

    assert f"{said} (resume.inDoubt: {in_doubt})." in tools.message


def test_status_that_says_nothing_new_equals_the_one_that_stands() -> None:
    agent = a_triage_agent()
    before = _status(agent, ["deploy"], age=60)

    assert _status(_stored(agent, before), ["deploy"]) == before


def test_condition_keeps_the_time_of_its_last_change() -> None:
    agent = a_triage_agent()

    ready, tools = _status(_stored(agent, _status(agent, ["deploy"], age=60)), []).conditions

    assert (ready.last_transition_time, tools.last_transition_time) == (ago(60), NOW)
