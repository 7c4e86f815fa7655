"""A Kubernetes API server in memory, over HTTP, for kopf, the official clients and kubectl."""

from triage_local.apiserver.faults import Answer, Faults
from triage_local.apiserver.server import ApiServer

__all__ = ["Answer", "ApiServer", "Faults"]
