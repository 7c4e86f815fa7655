"""What examples/trial and examples/own-agent bring beside the chart: it fits Kubernetes, the chart, and each other."""

from typing import Final

import kubernetes_validate
import pytest
import yaml

from support.charts import ROOT, Json, render
from support.restricted import breaches

EXAMPLES: Final = ROOT / "examples"
VALUES: Final[Json] = yaml.safe_load((EXAMPLES / "trial" / "values.yaml").read_text())


def _manifests(path: str) -> list[Json]:
    return list(yaml.safe_load_all((EXAMPLES / path).read_text()))


@pytest.mark.parametrize("path", ["trial/model.yaml", "own-agent/depot.yaml"])
def test_what_an_example_runs_fits_kubernetes_and_is_restricted(path: str) -> None:
    manifests = _manifests(path)
    for manifest in manifests:
        kubernetes_validate.validate(manifest, "1.34", strict=True)
    (deployment,) = (each for each in manifests if each["kind"] == "Deployment")
    (service,) = (each for each in manifests if each["kind"] == "Service")
    template = deployment["spec"]["template"]
    assert breaches(template["spec"]) == []
    assert template["spec"]["automountServiceAccountToken"] is False
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()


def test_the_agent_of_a_trial_finds_its_model_and_its_database() -> None:
    rendered = render({"database": {"urlSecret": {"name": ""}}}, VALUES)
    (agent,), (run,) = rendered.of("TriageAgent"), rendered.of("TriageRun")
    secret, service, deployment = _manifests("trial/model.yaml")
    model = agent["spec"]["model"]
    assert model["apiKeySecretRef"]["name"] == secret["metadata"]["name"]
    assert model["baseUrl"] == f"http://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
    assert run["spec"]["agentRef"]["name"] == agent["metadata"]["name"]
    (postgres,) = rendered.pods()["StatefulSet/triage-operator-postgres"]["containers"]
    (served,) = deployment["spec"]["template"]["spec"]["containers"]
    assert postgres["image"] == served["image"]
