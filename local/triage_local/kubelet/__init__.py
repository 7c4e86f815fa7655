"""Nodes of a local cluster whose pods are processes: an image is a name, a container is a process.

A pod has what an agent needs: init containers and containers, environment from everywhere, volumes as folders
(see ``volumes``), a memory limit, a grace period, a termination message, logs, and the statuses of a real kubelet.
It has no namespaces, users, probes, hooks, sidecars or restarts; CPU limits and security contexts change nothing.
"""

from triage_local.kubelet.containers import Container
from triage_local.kubelet.exceptions import KubeletError, NoSuchContainerError
from triage_local.kubelet.images import Image, python_image
from triage_local.kubelet.kubelet import ProcessKubelet
from triage_local.kubelet.machine import Timing

__all__ = [
    "Container",
    "Image",
    "KubeletError",
    "NoSuchContainerError",
    "ProcessKubelet",
    "Timing",
    "python_image",
]
