"""The operator's own pods: how many, which of them leads, and none at all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from support.kind.cluster import Kind
from support.kind.programs import SYSTEM

OPERATOR: Final = "deployment/triage-operator"
_PODS: Final = ("pods", "--namespace", SYSTEM, "--selector", "app.kubernetes.io/component=operator")


async def leader(kind: Kind) -> str:
    """Give the name of the pod that has the Lease; empty: none has."""
    named = ("lease", "triage-operator", "--namespace", SYSTEM)
    return await kind.programs.kubectl("get", *named, "--output=jsonpath={.spec.holderIdentity}")


async def restart(kind: Kind) -> None:
    """Begin to replace all operators by new ones."""
    await kind.programs.kubectl("rollout", "restart", OPERATOR, "--namespace", SYSTEM)


async def left(kind: Kind, pod: str) -> None:
    """Wait until a pod is told to end, or has ended."""
    waiting = ("wait", f"pod/{pod}", "--namespace", SYSTEM, "--timeout=170s")
    await kind.programs.kubectl(*waiting, "--for=jsonpath={.metadata.deletionTimestamp}")


@asynccontextmanager
async def replicated(kind: Kind, replicas: int) -> AsyncIterator[None]:
    """Have that many operators until the block ends."""
    try:
        await _scale(kind, replicas)
        yield
    finally:
        await _scale(kind, 1)


async def _scale(kind: Kind, replicas: int) -> None:
    await kind.programs.kubectl("scale", OPERATOR, f"--replicas={replicas}", "--namespace", SYSTEM)
    if replicas:
        await kind.programs.rolled_out(OPERATOR)
    else:
        await kind.programs.kubectl("wait", *_PODS, "--for=delete", "--timeout=170s")
