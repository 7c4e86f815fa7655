"""What all nodes share, since they are one machine in truth."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from triage_local.guard import Guard
from triage_local.kubelet.cluster import Cluster
from triage_local.kubelet.images import Image
from triage_local.kubelet.memory import MemoryLimits

HOST_IP: Final = "127.0.0.1"
"""Address of every node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things take here, in seconds."""

    termination_delay_seconds: float = 1.0
    """From the end of a process to the status that says so. A real kubelet needs about 1.9 s."""
    retry_seconds: float = 0.5
    """Between two tries to start a container. A real kubelet backs off from 10 s on."""
    forced_grace_seconds: float = 1.0
    """From SIGTERM to SIGKILL for a process whose pod was deleted by force."""
    memory_poll_seconds: float = 0.05
    resize_seconds: float = 1.0
    """From the room for a container's new size to its having it. A real kubelet needs 1 to 2.5 s until it says so."""
    watch_seconds: int = 10
    """After which a lost event is made good for. A real kubelet does not notice one."""
    heartbeat_seconds: float = 10.0
    """Between two renewals of a node's Lease, as a real kubelet does it."""


def _addresses() -> Iterator[str]:
    # All of 127.0.0.0/8 is this machine, so that each pod has an address of its own that even works.
    return (f"127.1.{number // 250}.{number % 250 + 1}" for number in itertools.count())


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The surroundings of a pod: the API server, the images, the disk, the watchdogs."""

    cluster: Cluster
    images: dict[str, Image]
    folder: Path
    guard: Guard
    memory: MemoryLimits
    timing: Timing
    addresses: Iterator[str] = field(default_factory=_addresses)
