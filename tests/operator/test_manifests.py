"""The pod of an attempt."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from support.builders import MEBIBYTE, RUN_UID, a_triage_agent, a_triage_run
from triage_contract.api import TriageAgent
from triage_operator.exceptions import PodTemplateError
from triage_operator.manifests import build_pod, template_fault
from triage_operator.revision import revision_of


def _pod(
    agent: TriageAgent | None = None,
    *,
    memory_limit_bytes: int | None = 256 * MEBIBYTE,
    avoided_node: str | None = None,
) -> dict[str, Any]:
    return build_pod(
        a_triage_run(agentRef={"name": "a" * 100}),
        agent or a_triage_agent(),
        name="tokens-4f1a2-a2",
        epoch=2,
        token="a-token",
        memory_limit_bytes=memory_limit_bytes,
        heartbeat_seconds=2.0,
        avoided_node=avoided_node,
    )


def _templated(spec: Mapping[str, Any], **metadata: Any) -> TriageAgent:
    return a_triage_agent(podTemplate={"spec": spec, "metadata": metadata})


def _container(pod: Mapping[str, Any]) -> dict[str, Any]:
    (container,) = (item for item in pod["spec"]["containers"] if item["name"] == "agent")
    return dict(container)


def _env(pod: Mapping[str, Any]) -> dict[str, str]:
    """Give the plain variables, and those from Secrets as ``name/key``."""
    return {
        item["name"]: item.get("value")
        or "{name}/{key}".format_map(item.get("valueFrom", {}).get("secretKeyRef", {"name": "?", "key": "?"}))
        for item in _container(pod)["env"]
    }


def test_pod_is_bare_labelled_and_owned_by_its_run() -> None:
    pod = _pod()

    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["metadata"] == {
        "name": "tokens-4f1a2-a2",
        "namespace": "docs",
        "labels": {
            "triage-operator.dev/run-uid": RUN_UID,
            "triage-operator.dev/epoch": "2",
            "triage-operator.dev/agent": f"{'a' * 54}-28165978",
            "triage-operator.dev/revision": revision_of(a_triage_agent()),
            "app.kubernetes.io/managed-by": "triage-operator",
            "app.kubernetes.io/component": "agent",
        },
        "annotations": {
            "triage-operator.dev/run": "tokens",
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
        },
        "ownerReferences": [
            {
                "apiVersion": "triage-operator.dev/v1alpha1",
                "kind": "TriageRun",
                "name": "tokens",
                "uid": RUN_UID,
                "controller": True,
                "blockOwnerDeletion": False,
            }
        ],
    }


def test_container_knows_what_becomes_of_undeclared_calls_in_doubt() -> None:
    assert _env(_pod(a_triage_agent(resume={"inDoubt": "Retry"})))["TRIAGE_IN_DOUBT"] == "Retry"


def test_pod_has_no_finalizer() -> None:
    assert "finalizers" not in _pod()["metadata"]


def test_container_works_on_its_attempt() -> None:
    pod = _pod(a_triage_agent(tools={"read_page": "ReadOnly", "file_issue": "Idempotent"}))

    assert _container(pod)["command"] == ["triage", "attempt"]
    assert _container(pod)["image"] == "docs-triage:1"
    assert json.loads(_env(pod).pop("TRIAGE_TOOLS")) == {"read_page": "ReadOnly", "file_issue": "Idempotent"}
    assert {key: value for key, value in _env(pod).items() if key != "TRIAGE_TOOLS"} == {
        "TRIAGE_RUN_ID": RUN_UID,
        "TRIAGE_EPOCH": "2",
        "TRIAGE_TOKEN": "a-token",
        "TRIAGE_APP": "triage_agent.docs_triage.agent:app",
        "TRIAGE_IN_DOUBT": "Park",
        "TRIAGE_GRACE_SECONDS": "30",
        "TRIAGE_HEARTBEAT_SECONDS": "2",
        "TRIAGE_MEMORY_LIMIT_BYTES": "268435456",
        "TRIAGE_DATABASE_URL": "triage-database/url",
        "DOCS_TRACKER": "postgres",
    }


def test_pod_meets_the_restricted_pod_security_standard() -> None:
    spec = _pod()["spec"]
    context = _container(_pod())["securityContext"]

    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["readOnlyRootFilesystem"] is True
    assert spec["automountServiceAccountToken"] is False
    assert {"name": "tmp", "mountPath": "/tmp"} in _container(_pod())["volumeMounts"]


def test_database_behind_a_pooler() -> None:
    reference = {"name": "db", "key": "direct"}
    agent = a_triage_agent(
        database={
            "urlSecretRef": {"name": "db", "key": "pooled"},
            "directUrlSecretRef": reference,
            "pooler": "transaction",
        }
    )

    env = _env(_pod(agent))

    assert env["TRIAGE_DATABASE_URL"] == "db/pooled"
    assert env["TRIAGE_DATABASE_DIRECT_URL"] == "db/direct"
    assert env["TRIAGE_DATABASE_POOLER"] == "transaction"


def test_gemini_model_serves_an_agent_of_ones_own_too() -> None:
    model = {
        "name": "gemini-3.8-flash",
        "baseUrl": "http://model:8080",
        "apiKeySecretRef": {"name": "gemini", "key": "api-key"},
    }

    env = _env(_pod(a_triage_agent(model=model)))

    assert env["DOCS_MODEL"] == "gemini-3.8-flash"
    assert env["DOCS_MODEL_BASE_URL"] == env["GOOGLE_GEMINI_BASE_URL"] == "http://model:8080"
    assert env["DOCS_MODEL_API_KEY"] == env["GOOGLE_API_KEY"] == "gemini/api-key"


@pytest.mark.parametrize("name", ["ollama_chat/qwen3", "replay:/pages/replies.jsonl"])
def test_other_models_are_no_gemini(name: str) -> None:
    model = {
        "name": name,
        "baseUrl": "http://model:8080",
        "apiKeySecretRef": {"name": "key", "key": "key"},
    }

    env = _env(_pod(a_triage_agent(model=model)))

    assert env["DOCS_MODEL_API_KEY"] == "key/key"
    assert not [key for key in env if key.startswith("GOOGLE")]


def test_file_tracker() -> None:
    agent = a_triage_agent(tracker={"file": {"path": "/issues/all.json"}})

    assert _env(_pod(agent))["DOCS_TRACKER"] == "file:/issues/all.json"


def test_github_tracker() -> None:
    github = {"repository": "acme/docs", "tokenSecretRef": {"name": "github", "key": "token"}}
    there = _env(_pod(a_triage_agent(tracker={"github": github})))
    elsewhere = {**github, "baseUrl": "https://github.example/api/v3"}

    assert (there["DOCS_TRACKER"], there["DOCS_GITHUB_TOKEN"]) == ("github:acme/docs", "github/token")
    assert "DOCS_GITHUB_URL" not in there
    assert (
        _env(_pod(a_triage_agent(tracker={"github": elsewhere})))["DOCS_GITHUB_URL"] == elsewhere["baseUrl"]
    )


def test_pages_from_a_config_map() -> None:
    pod = _pod(a_triage_agent(docs={"configMapRef": {"name": "pages"}}))

    path = _env(pod)["DOCS_PATH"]
    assert {"name": "docs", "mountPath": path, "readOnly": True} in _container(pod)["volumeMounts"]
    assert {"name": "docs", "configMap": {"name": "pages"}} in pod["spec"]["volumes"]


def test_pages_in_the_image() -> None:
    pod = _pod(a_triage_agent(docs={"path": "/srv/pages"}))

    assert _env(pod)["DOCS_PATH"] == "/srv/pages"
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["tmp"]


@pytest.mark.parametrize(
    ("requests", "limit_mebibytes", "expected"),
    [
        ({"memory": "128Mi", "cpu": "1"}, 256, {"memory": "128Mi", "cpu": "1"}),
        ({"memory": "128Mi", "cpu": "1"}, 384, {"memory": "192Mi", "cpu": "1"}),
        ({"memory": "256Mi"}, 384, {"memory": "384Mi"}),
        ({"memory": "512Mi"}, 384, {"memory": "384Mi"}),
    ],
)
def test_raised_memory_raises_limit_and_request(
    requests: dict[str, str], limit_mebibytes: int, expected: dict[str, str]
) -> None:
    agent = a_triage_agent(resources={"requests": requests, "limits": {"memory": "256Mi"}})

    resources = _container(_pod(agent, memory_limit_bytes=limit_mebibytes * MEBIBYTE))["resources"]

    assert resources == {"requests": expected, "limits": {"memory": f"{limit_mebibytes}Mi"}}


def test_agent_without_resources() -> None:
    pod = _pod(a_triage_agent(resources={}), memory_limit_bytes=None)

    assert _container(pod)["resources"] == {}
    assert "TRIAGE_MEMORY_LIMIT_BYTES" not in _env(pod)


def test_template_is_merged_item_by_item() -> None:
    agent = _templated(
        {
            "nodeSelector": {"pool": "agents"},
            "terminationGracePeriodSeconds": 90,
            "securityContext": {"runAsUser": 1000, "seccompProfile": None},
            "containers": [
                {
                    "name": "agent",
                    "env": [{"name": "DOCS_TRACKER", "value": "file:/x"}, {"name": "LOG", "value": "debug"}],
                    "volumeMounts": [{"name": "issues", "mountPath": "/issues"}],
                    "securityContext": {"readOnlyRootFilesystem": False},
                },
                {"name": "proxy", "image": "proxy:1"},
            ],
            "volumes": [{"name": "issues", "persistentVolumeClaim": {"claimName": "issues"}}],
        },
        labels={"team": "docs", "app.kubernetes.io/component": "theirs"},
        annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
    )

    pod = _pod(agent)

    assert pod["spec"]["nodeSelector"] == {"pool": "agents"}
    assert pod["spec"]["securityContext"] == {"runAsNonRoot": True, "runAsUser": 1000}
    assert [item["name"] for item in pod["spec"]["containers"]] == ["agent", "proxy"]
    assert [item["name"] for item in pod["spec"]["volumes"]] == ["tmp", "issues"]
    assert [item["mountPath"] for item in _container(pod)["volumeMounts"]] == ["/tmp", "/issues"]
    assert _container(pod)["securityContext"]["readOnlyRootFilesystem"] is False
    assert _container(pod)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    env = _env(pod)
    assert (env["DOCS_TRACKER"], env["LOG"], env["TRIAGE_EPOCH"]) == ("file:/x", "debug", "2")
    assert env["TRIAGE_GRACE_SECONDS"] == str(pod["spec"]["terminationGracePeriodSeconds"]) == "90"
    assert pod["metadata"]["labels"]["team"] == "docs"
    assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "agent"
    assert pod["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"


def test_merging_leaves_the_agent_as_it_was() -> None:
    agent = _templated({"volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}]})
    before = agent.model_dump()

    assert _pod(agent) == _pod(agent)
    assert agent.model_dump() == before


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({"restartPolicy": "Always"}, "restartPolicy"),
        ({"containers": [{"name": "agent", "command": ["sh"]}]}, "containers[agent].command"),
        ({"containers": [{"name": "agent", "image": "other:1"}]}, "containers[agent].image"),
        (
            {"containers": [{"name": "agent", "resources": {"limits": {}}}]},
            "containers[agent].resources",
        ),
        (
            {"containers": [{"name": "agent", "env": [{"name": "TRIAGE_TOKEN", "value": "mine"}]}]},
            "containers[agent].env[TRIAGE_TOKEN]",
        ),
        ({"containers": {"name": "agent"}}, "containers: must be a list"),
        ({"containers": [{"image": "proxy:1"}]}, "containers[0]: must be an object with name"),
        ({"volumes": ["tmp"]}, "volumes[0]: must be an object with name"),
        ({"$patch": "replace"}, "$patch"),
    ],
)
def test_template_that_fights_with_the_operator_is_an_error_that_names_the_field(
    spec: dict[str, Any], named: str
) -> None:
    agent = _templated(spec)

    with pytest.raises(PodTemplateError) as raised:
        _pod(agent)

    assert str(raised.value).startswith("spec.podTemplate.spec")
    assert named in str(raised.value)
    assert template_fault(agent) == str(raised.value)


def test_template_that_repeats_what_the_operator_sets_is_none() -> None:
    agent = _templated(
        {"restartPolicy": "Never", "containers": [{"name": "agent", "image": "docs-triage:1"}]}
    )

    assert template_fault(agent) is None


def test_pod_of_the_same_attempt_is_the_same() -> None:
    assert _pod() == _pod()


def test_a_silent_node_is_avoided_beside_what_the_template_wants() -> None:
    assert "affinity" not in _pod()["spec"]
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod = _pod(_templated({"affinity": affinity}), avoided_node="one")
    field = {"key": "metadata.name", "operator": "NotIn", "values": ["one"]}
    assert pod["spec"]["affinity"]["nodeAffinity"] == {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchFields": [field]}}
        ],
    }
