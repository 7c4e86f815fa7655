"""A real Kubernetes API server with its etcd, without nodes: what the emulator is held against."""

from triage_local.lone.server import CONTROLLERS, PROGRAMS, LoneApiServer

__all__ = ["CONTROLLERS", "PROGRAMS", "LoneApiServer"]
