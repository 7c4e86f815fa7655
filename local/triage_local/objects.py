"""The first objects of a local cluster."""

import base64
from collections.abc import Mapping
from typing import Any, Final

from triage_contract.names import API_VERSION

NAMESPACE: Final = "docs"
IMAGE: Final = "docs-triage:local"
DATABASE_SECRET: Final = "triage-database"
MODEL_SECRET: Final = "gemini"

Json = dict[str, Any]


def build_namespace(name: str) -> Json:
    """Build a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def build_secret(name: str, data: Mapping[str, str]) -> Json:
    """Build a Secret from plain texts by their keys."""
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def build_agent(model: str, base_url: str | None) -> Json:
    """Build the default TriageAgent.

    Args:
        model: Name of its model.
        base_url: The model's endpoint; None: the provider's own.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "TriageAgent",
        "metadata": {"name": "default", "namespace": NAMESPACE},
        "spec": {
            "image": IMAGE,
            "model": {
                "name": model,
                "apiKeySecretRef": {"name": MODEL_SECRET, "key": "api-key"},
                **({"baseUrl": base_url} if base_url else {}),
            },
            "database": {"urlSecretRef": {"name": DATABASE_SECRET, "key": "url"}},
            "resources": {"requests": {"memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        },
    }
