"""The pod of an attempt. Pure."""

import json
from typing import Any, Final

from triage_contract.api import TriageAgent, TriageRun
from triage_contract.api.agent import Database, Docs, Model, Tracker
from triage_contract.api.base import SecretKeyRef
from triage_contract.names import (
    AGENT_CONTAINER,
    API_VERSION,
    MANAGER,
    Annotation,
    AttemptEnv,
    DocsEnv,
    Label,
)
from triage_contract.quantities import format_memory, parse_memory
from triage_contract.states import Pooler
from triage_operator.exceptions import PodTemplateError
from triage_operator.memory import agent_limit
from triage_operator.merging import merge_template
from triage_operator.naming import label_value
from triage_operator.revision import revision_of

COMMAND: Final = ("triage", "attempt")
GRACE_SECONDS: Final = 30
"""What a pod has between SIGTERM and SIGKILL where its template says nothing; Kubernetes' own default."""
DOCS_PATH: Final = "/var/lib/triage/docs"

_GOOGLE_API_KEY: Final = "GOOGLE_API_KEY"
_GOOGLE_BASE_URL: Final = "GOOGLE_GEMINI_BASE_URL"
"""What google-genai itself reads, so that a user's own agent gets the same model without code for it."""

Json = dict[str, Any]


def build_pod(
    run: TriageRun,
    agent: TriageAgent,
    *,
    name: str,
    epoch: int,
    token: str,
    memory_limit_bytes: int | None,
    heartbeat_seconds: float,
    avoided_node: str | None,
) -> Json:
    """Build the pod of an attempt: bare, never restarted, owned by its run.

    Args:
        name: the pod's name, as the attempt's row holds it.
        token: the attempt's fence token, a secret.
        memory_limit_bytes: what the attempt's row says; None: no limit.
        avoided_node: one that gets the pod only where no other can have it; None: any will do.

    Raises:
        PodTemplateError: the agent's ``podTemplate`` cannot be merged.
    """
    template = agent.spec.pod_template
    grace_seconds = template.spec.get("terminationGracePeriodSeconds") or GRACE_SECONDS
    attempt = {
        AttemptEnv.RUN_ID: run.metadata.uid,
        AttemptEnv.EPOCH: str(epoch),
        AttemptEnv.TOKEN: token,
        AttemptEnv.APP: agent.spec.app,
        AttemptEnv.TOOLS: json.dumps(agent.spec.tools, sort_keys=True),
        AttemptEnv.IN_DOUBT: agent.spec.resume.in_doubt,
        AttemptEnv.GRACE_SECONDS: str(grace_seconds),
        AttemptEnv.HEARTBEAT_SECONDS: f"{heartbeat_seconds:g}",
    }
    if memory_limit_bytes is not None:
        attempt[AttemptEnv.MEMORY_LIMIT_BYTES] = str(memory_limit_bytes)
    env = [_value(key, value) for key, value in attempt.items()]
    base = {**_spec(agent, env, memory_limit_bytes), **_affinity(avoided_node)}
    spec = merge_template(base, template.spec)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": run.metadata.namespace,
            "labels": {
                **template.metadata.labels,
                Label.RUN_UID.value: run.metadata.uid,
                Label.EPOCH.value: str(epoch),
                Label.AGENT.value: label_value(run.spec.agent_ref.name),
                Label.REVISION.value: revision_of(agent),
                Label.MANAGED_BY.value: MANAGER,
                Label.COMPONENT.value: AGENT_CONTAINER,
            },
            "annotations": {
                Annotation.RUN.value: run.metadata.name,
                # The autoscaler otherwise keeps a node for a pod whose owner it does not know.
                Annotation.SAFE_TO_EVICT.value: "true",
                **template.metadata.annotations,
            },
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": "TriageRun",
                    "name": run.metadata.name,
                    "uid": run.metadata.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": spec,
    }


def template_fault(agent: TriageAgent) -> str | None:
    """Say what is wrong with an agent's ``podTemplate``; None: nothing that shows before the API server looks."""
    try:
        merge_template(_spec(agent, [], None), agent.spec.pod_template.spec)
    except PodTemplateError as error:
        return str(error)
    return None


def _spec(agent: TriageAgent, attempt_env: list[Json], memory_limit_bytes: int | None) -> Json:
    spec = agent.spec
    env = [*attempt_env, *_database_env(spec.database), *_tracker_env(spec.tracker)]
    volumes: list[Json] = [{"name": "tmp", "emptyDir": {}}]
    mounts: list[Json] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    if spec.model is not None:
        env += _model_env(spec.model)
    if spec.docs is not None:
        env.append(_value(DocsEnv.PATH, spec.docs.path or DOCS_PATH))
        volumes += _docs_volumes(spec.docs)
        mounts += [{"name": "docs", "mountPath": DOCS_PATH, "readOnly": True}] if not spec.docs.path else []
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        # The restricted Pod Security Standard.
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": AGENT_CONTAINER,
                "image": spec.image,
                "command": list(COMMAND),
                "env": env,
                "resources": _resources(agent, memory_limit_bytes),
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": True,
                },
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def _affinity(avoided_node: str | None) -> Json:
    if avoided_node is None:
        return {}
    field = {"key": "metadata.name", "operator": "NotIn", "values": [avoided_node]}
    preferred = [{"weight": 100, "preference": {"matchFields": [field]}}]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}


def _resources(agent: TriageAgent, memory_limit_bytes: int | None) -> Json:
    """Give the container's resources. A raised memory limit raises the request by the same factor."""
    requests, limits = dict(agent.spec.resources.requests), dict(agent.spec.resources.limits)
    own = agent_limit(agent)
    if memory_limit_bytes is not None and own is not None:
        limits["memory"] = format_memory(memory_limit_bytes)
        if own != memory_limit_bytes and "memory" in requests:
            raised = parse_memory(requests["memory"]) * memory_limit_bytes // max(own, 1)
            requests["memory"] = format_memory(min(raised, memory_limit_bytes))
    return {key: value for key, value in (("requests", requests), ("limits", limits)) if value}


def _database_env(database: Database) -> list[Json]:
    env = [_secret(AttemptEnv.DATABASE_URL, database.url_secret_ref)]
    if database.direct_url_secret_ref is not None:
        env.append(_secret(AttemptEnv.DATABASE_DIRECT_URL, database.direct_url_secret_ref))
    if database.pooler is not Pooler.NONE:
        env.append(_value(AttemptEnv.DATABASE_POOLER, database.pooler))
    return env


def _model_env(model: Model) -> list[Json]:
    env = [_value(DocsEnv.MODEL, model.name)]
    is_gemini = "/" not in model.name and ":" not in model.name
    if model.base_url is not None:
        names = [DocsEnv.MODEL_BASE_URL, *([_GOOGLE_BASE_URL] if is_gemini else [])]
        env += [_value(name, model.base_url) for name in names]
    if model.api_key_secret_ref is not None:
        names = [DocsEnv.MODEL_API_KEY, *([_GOOGLE_API_KEY] if is_gemini else [])]
        env += [_secret(name, model.api_key_secret_ref) for name in names]
    return env


def _tracker_env(tracker: Tracker | None) -> list[Json]:
    if tracker is not None and tracker.file is not None:
        return [_value(DocsEnv.TRACKER, f"file:{tracker.file.path}")]
    if tracker is None or tracker.github is None:
        return [_value(DocsEnv.TRACKER, "postgres")]
    github = tracker.github
    env = [
        _value(DocsEnv.TRACKER, f"github:{github.repository}"),
        _secret(DocsEnv.GITHUB_TOKEN, github.token_secret_ref),
    ]
    return env if github.base_url is None else [*env, _value(DocsEnv.GITHUB_URL, github.base_url)]


def _docs_volumes(docs: Docs) -> list[Json]:
    if docs.config_map_ref is None:
        return []
    return [{"name": "docs", "configMap": {"name": docs.config_map_ref.name}}]


def _value(name: str, value: str) -> Json:
    return {"name": str(name), "value": str(value)}


def _secret(name: str, ref: SecretKeyRef) -> Json:
    return {"name": str(name), "valueFrom": {"secretKeyRef": {"name": ref.name, "key": ref.key}}}
