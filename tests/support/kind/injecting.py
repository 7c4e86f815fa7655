"""A mutating webhook that injects a sidecar into the pods of a namespace, as service meshes do."""

import asyncio
import base64
import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from support.kind.cluster import AGENT_IMAGE
from support.kind.site import KindSite

SIDECAR: Final = "injected"

_NAME: Final = "injector"
_SERVER: Final = Path(__file__).with_name("injecting_server.py")
_SECURITY: Final = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_INJECTED: Final = {
    "name": SIDECAR,
    "image": AGENT_IMAGE,
    "command": ["sleep", "600"],
    "securityContext": _SECURITY,
}


@asynccontextmanager
async def injecting(site: KindSite, folder: Path) -> AsyncIterator[None]:
    """Let each pod of the site get a sidecar that never ends, until the block ends.

    Args:
        site: where the webhook's server runs as well.
        folder: an empty one for its certificate.
    """
    service = f"{_NAME}.{site.namespace}.svc"
    certificate, key = await asyncio.to_thread(_certify, service, folder)
    kubectl = site.kind.programs
    await site.create_secret(_NAME, {"tls.crt": certificate, "tls.key": key})
    await kubectl.apply(*_server(), namespace=site.namespace)
    await kubectl.rolled_out(f"deployment/{_NAME}", namespace=site.namespace)
    hook = f"{_NAME}-{site.namespace}"
    await kubectl.apply(_webhook(hook, site.namespace, certificate), namespace=site.namespace)
    try:
        yield
    finally:
        await kubectl.kubectl("delete", "mutatingwebhookconfiguration", hook)


def _certify(host: str, folder: Path) -> tuple[str, str]:
    """Make a certificate that vouches for itself; give it and its key."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    files = ("-out", str(certificate), "-keyout", str(key))
    names = ("-subj", f"/CN={_NAME}", "-addext", f"subjectAltName=DNS:{host}")
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")
    subprocess.run(["openssl", "req", "-x509", *kind, *names, *files], check=True, capture_output=True)
    return certificate.read_text(), key.read_text()


def _server() -> tuple[dict[str, Any], ...]:
    labels = {"app": _NAME}
    container = {
        "name": _NAME,
        "image": AGENT_IMAGE,
        "command": ["python", "/server/server.py"],
        "env": [{"name": "SIDECAR", "value": json.dumps(_INJECTED)}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8443, "scheme": "HTTPS"}, "periodSeconds": 1},
        "securityContext": _SECURITY,
        "volumeMounts": [
            {"name": "server", "mountPath": "/server"},
            {"name": "certificates", "mountPath": "/certificates"},
        ],
    }
    spec = {
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [
            {"name": "server", "configMap": {"name": _NAME}},
            {"name": "certificates", "secret": {"secretName": _NAME}},
        ],
    }
    return (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _NAME},
            "data": {"server.py": _SERVER.read_text()},
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _NAME},
            "spec": {"selector": labels, "ports": [{"port": 443, "targetPort": 8443}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": _NAME},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        },
    )


def _webhook(name: str, namespace: str, certificate: str) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "injector.test.example",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ],
                "clientConfig": {
                    "service": {"name": _NAME, "namespace": namespace},
                    "caBundle": base64.b64encode(certificate.encode()).decode(),
                },
            }
        ],
    }
