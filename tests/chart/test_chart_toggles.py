"""Each toggle of the chart: it renders, lints, fits the schemas of Kubernetes, and makes what it says."""

import json
from functools import cache
from typing import Any, Final

import helm_python
import kubernetes_validate
import pytest
import yaml

from support.charts import CHART, DATABASE, NAMESPACE, ROOT, merged, render, stored
from triage_contract.api import parse_agent, parse_run
from triage_contract.names import API_VERSION

VERSIONS: Final = ("1.29", "1.34", "1.37")
"""The oldest that the chart takes, the one that the tests' cluster has, the newest that there are schemas of."""

_FOREIGN: Final = {API_VERSION, "monitoring.coreos.com/v1"}
"""Kinds that come with definitions of their own."""

TOGGLES: Final[dict[str, dict[str, Any]]] = {
    "nothing": {},
    "two operators": {"replicaCount": 2},
    "some namespaces": {"watchNamespaces": ["docs", "support"], "clusterId": "blue"},
    "a digest": {"image": {"digest": f"sha256:{'0' * 64}"}},
    "settings": {"settings": {"workers": 1000000, "heartbeatSeconds": 1.5}, "extraEnv": [{"name": "A"}]},
    "a pooler": {"database": {"pooler": "transaction", "directUrlSecret": {"name": "direct"}}},
    "no migrations": {"migrations": {"enabled": False}},
    "no definitions": {"crds": {"enabled": False}},
    "definitions that go": {"crds": {"keep": False}},
    "no roles": {"rbac": {"create": False, "aggregate": False}},
    "a service account of one's own": {"serviceAccount": {"create": False, "name": "mine"}},
    "an agent": {"agent": {"enabled": True, "databaseSecret": {"name": "agents"}}},
    "an agent without a service account": {
        "agent": {
            "enabled": True,
            "databaseSecret": {"name": "agents"},
            "serviceAccount": {"create": False},
        },
        "imagePullSecrets": [{"name": "registry"}],
    },
    "an example": {
        "agent": {"enabled": True, "databaseSecret": {"name": "agents"}},
        "exampleRun": {"enabled": True, "report": 'It says "never": why?'},
    },
    "no metrics": {"metrics": {"service": {"enabled": False}}},
    "a ServiceMonitor": {"metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "p"}}}},
    "a PodMonitor": {"metrics": {"service": {"enabled": False}, "podMonitor": {"enabled": True}}},
    "network policies": {
        "networkPolicy": {
            "enabled": True,
            "agentNamespaces": ["docs", NAMESPACE],
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        },
        "postgres": {"enabled": True},
    },
    "no disruption budget": {"podDisruptionBudget": {"enabled": False}},
    "no spread": {"topologySpread": {"enabled": False}},
    "a place of its own": {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
        "podAnnotations": {"a": "b"},
        "podLabels": {"c": "d"},
    },
    "a Postgres": {"postgres": {"enabled": True}, "agent": {"enabled": True}},
    "a Postgres without a volume": {"postgres": {"enabled": True, "storage": ""}},
}


@pytest.mark.parametrize("toggle", TOGGLES)
def test_what_is_rendered_lints_and_fits_the_schemas_of_kubernetes(toggle: str) -> None:
    report = helm_python.lint(CHART, merged(DATABASE, TOGGLES[toggle]), strict=True, namespace=NAMESPACE)
    # Severity 2 is a warning.
    assert [each for each in report["messages"] if each["severity"] >= 2] == []
    for each in render(TOGGLES[toggle]).objects:
        if each["apiVersion"] not in _FOREIGN:
            _check_schemas(json.dumps(each))


@pytest.mark.parametrize("toggle", TOGGLES)
def test_names_and_labels_are_those_that_kubernetes_takes(toggle: str) -> None:
    rendered = render(TOGGLES[toggle], release="a-release-with-a-name-that-is-quite-long-as-they-go")
    for each in rendered.objects:
        metadata = each["metadata"]
        assert len(metadata["name"]) <= 63 or each["kind"] in ("ClusterRole", "ClusterRoleBinding")
        assert all(len(value) <= 63 for value in metadata["labels"].values())


@cache
def _check_schemas(manifest: str) -> None:
    """Raise what is wrong with an object. Most are the same whatever is toggled."""
    for version in VERSIONS:
        kubernetes_validate.validate(json.loads(manifest), version, strict=True)


def test_definitions_are_the_generated_ones_and_stay() -> None:
    for crd in render().of("CustomResourceDefinition"):
        plural = crd["spec"]["names"]["plural"]
        assert crd["spec"] == yaml.safe_load((ROOT / "crds" / f"{plural}.yaml").read_text())["spec"]
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert len(render().of("CustomResourceDefinition")) == 2


def test_definitions_can_be_left_out_or_go_with_the_release() -> None:
    assert render(TOGGLES["no definitions"]).of("CustomResourceDefinition") == []
    for crd in render(TOGGLES["definitions that go"]).of("CustomResourceDefinition"):
        assert "annotations" not in crd["metadata"]


def test_agent_and_example_are_whole_and_wait_for_their_definitions() -> None:
    rendered = render(TOGGLES["an example"])
    (agent,), (run,) = rendered.of("TriageAgent"), rendered.of("TriageRun")
    parsed = parse_agent(stored(agent))
    assert parsed.spec.database.url_secret_ref.name == "agents"
    assert parsed.spec.pod_template.spec == {"serviceAccountName": "triage-operator-agent"}
    assert parse_run(stored(run)).spec.report == 'It says "never": why?'
    for each in (agent, run):
        assert each["metadata"]["annotations"] == {
            "helm.sh/hook": "post-install,post-upgrade,post-rollback",
            "meta.helm.sh/release-name": "triage-operator",
            "meta.helm.sh/release-namespace": NAMESPACE,
        }


def test_another_report_is_another_run() -> None:
    names = {
        render({"exampleRun": {"enabled": True, "report": report}}).of("TriageRun")[0]["metadata"]["name"]
        for report in ("one", "another", "one")
    }
    assert len(names) == 2


def test_fields_of_the_agent_go_over_those_of_the_chart() -> None:
    spec = {"image": "mine:1", "podTemplate": {"spec": {"nodeSelector": {"disk": "ssd"}}}}
    (agent,) = render(TOGGLES["an agent"], {"agent": {"spec": spec}}).of("TriageAgent")
    assert agent["spec"]["image"] == "mine:1"
    assert agent["spec"]["podTemplate"]["spec"] == {
        "nodeSelector": {"disk": "ssd"},
        "serviceAccountName": "triage-operator-agent",
    }


def test_the_database_of_a_trial_is_that_of_operator_and_agent() -> None:
    rendered = render({"database": {"urlSecret": {"name": ""}}}, TOGGLES["a Postgres"])
    (secret,), (agent,) = rendered.of("Secret"), rendered.of("TriageAgent")
    (operator,) = rendered.pods()["Deployment/triage-operator"]["containers"]
    reference = {"name": secret["metadata"]["name"], "key": "url"}
    assert operator["env"][0]["valueFrom"]["secretKeyRef"] == reference
    assert agent["spec"]["database"]["urlSecretRef"] == reference
    (service,) = (each for each in rendered.of("Service") if each["spec"]["ports"][0]["port"] == 5432)
    assert f"@{service['metadata']['name']}.{NAMESPACE}.svc:5432/" in secret["stringData"]["url"]
    assert "for trials" in rendered.notes


def test_an_operator_alone_never_holds_up_a_drain() -> None:
    (budget,) = render().of("PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize("toggle", TOGGLES)
def test_nothing_has_a_finalizer_or_runs_when_the_release_goes(toggle: str) -> None:
    for each in render(TOGGLES[toggle]).objects:
        assert "finalizers" not in each["metadata"]
        assert "delete" not in each["metadata"].get("annotations", {}).get("helm.sh/hook", "")


def test_network_policies_hold_for_the_pods_they_are_meant_for() -> None:
    rendered = render(TOGGLES["network policies"])
    policies = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): each["spec"]["podSelector"]["matchLabels"]
        for each in rendered.of("NetworkPolicy")
    }
    assert policies.keys() == {
        (NAMESPACE, "triage-operator"),
        (NAMESPACE, "triage-operator-postgres"),
        (NAMESPACE, "triage-operator-agents"),
        ("docs", "triage-operator-agents"),
    }
    operator = rendered.one("Deployment", "triage-operator")["spec"]["template"]["metadata"]["labels"]
    assert policies[NAMESPACE, "triage-operator"].items() <= operator.items()
    postgres = rendered.one("StatefulSet", "triage-operator-postgres")["spec"]["template"]["metadata"][
        "labels"
    ]
    assert policies[NAMESPACE, "triage-operator-postgres"].items() <= postgres.items()


@pytest.mark.parametrize("toggle", ["a ServiceMonitor", "a PodMonitor"])
def test_a_monitor_selects_what_there_is_to_scrape(toggle: str) -> None:
    rendered = render(TOGGLES[toggle])
    if toggle == "a ServiceMonitor":
        (monitor,), (scraped,) = rendered.of("ServiceMonitor"), rendered.of("Service")
        (port,), (endpoint,) = scraped["spec"]["ports"], monitor["spec"]["endpoints"]
    else:
        (monitor,), (deployment,) = rendered.of("PodMonitor"), rendered.of("Deployment")
        scraped = deployment["spec"]["template"]
        (port,), (endpoint,) = (
            scraped["spec"]["containers"][0]["ports"],
            monitor["spec"]["podMetricsEndpoints"],
        )
    assert monitor["spec"]["selector"]["matchLabels"].items() <= scraped["metadata"]["labels"].items()
    assert endpoint["port"] == port["name"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"database": {"urlSecret": {"name": ""}}}, "set database.urlSecret.name"),
        ({"agent": {"enabled": True}}, "set agent.databaseSecret.name"),
        (
            {"metrics": {"service": {"enabled": False}, "serviceMonitor": {"enabled": True}}},
            "metrics.serviceMonitor needs metrics.service.enabled",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_value_to_set(values: dict[str, Any], said: str) -> None:
    with pytest.raises(helm_python.HelmError, match=said):
        render(values)
