"""Every pod that comes of the chart: restricted, and with a token only where one is used."""

import pytest

from support.builders import MEBIBYTE, a_triage_run
from support.charts import render, stored
from support.restricted import breaches
from triage_contract.api import parse_agent
from triage_operator.manifests import build_pod
from triage_operator.options import Option, options_of

_ALL = {
    "postgres": {"enabled": True},
    "agent": {"enabled": True, "spec": {"docs": {"configMapRef": {"name": "pages"}}}},
}


def test_every_pod_of_the_chart_is_restricted() -> None:
    pods = render(_ALL).pods()
    assert pods.keys() == {
        "Deployment/triage-operator",
        "StatefulSet/triage-operator-postgres",
        "Pod/triage-operator-check",
    }
    assert {name: breaches(spec) for name, spec in pods.items()} == {name: [] for name in pods}


def test_only_what_talks_to_the_api_server_has_a_token() -> None:
    mounted = {name for name, spec in render(_ALL).pods().items() if spec["automountServiceAccountToken"]}
    assert mounted == {"Deployment/triage-operator", "Pod/triage-operator-check"}
    for account in render(_ALL).of("ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_pods_of_the_charts_agent_are_restricted_and_have_no_token() -> None:
    (agent,) = render(_ALL).of("TriageAgent")
    pod = build_pod(
        a_triage_run(),
        parse_agent(stored(agent)),
        name="tokens-4f1a2-a1",
        epoch=1,
        token="a-token",
        memory_limit_bytes=512 * MEBIBYTE,
        heartbeat_seconds=2.0,
        avoided_node=None,
    )
    assert breaches(pod["spec"]) == []
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["serviceAccountName"] == "triage-operator-agent"


def test_a_migration_comes_before_every_operator() -> None:
    spec = render().pods()["Deployment/triage-operator"]
    (migrate,), (operator,) = spec["initContainers"], spec["containers"]
    assert migrate["args"] == ["migrate", "--wait-seconds", "60"]
    assert migrate["image"] == operator["image"]
    assert migrate["env"] == operator["env"][: len(migrate["env"])]
    without = render({"migrations": {"enabled": False}}).pods()["Deployment/triage-operator"]
    assert "initContainers" not in without


@pytest.mark.parametrize(
    "option",
    [each for each in options_of("reconciling", "deciding") if isinstance(each.default, int | float)],
    ids=lambda option: option.flag,
)
def test_each_setting_reaches_the_operator_under_its_variable(option: Option) -> None:
    first, *others = option.flag.removeprefix("--").split("-")
    name = first + "".join(word.capitalize() for word in others)
    (operator,) = render({"settings": {name: 1000000}}).pods()["Deployment/triage-operator"]["containers"]
    assert {"name": option.variable, "value": "1000000"} in operator["env"]


def test_a_setting_of_a_fraction_stays_one() -> None:
    (operator,) = render({"settings": {"lookSeconds": 0.05}}).pods()["Deployment/triage-operator"][
        "containers"
    ]
    assert {"name": "TRIAGE_OPERATOR_LOOK_SECONDS", "value": "0.05"} in operator["env"]


def test_no_variable_of_the_operator_is_given_twice() -> None:
    values = {"clusterId": "blue", "watchNamespaces": ["docs"], "settings": {"workers": 3}}
    (operator,) = render(values).pods()["Deployment/triage-operator"]["containers"]
    names = [each["name"] for each in operator["env"]]
    assert len(names) == len(set(names))
