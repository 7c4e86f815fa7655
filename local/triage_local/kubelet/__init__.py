"""Nodes of a local cluster whose pods are processes: an image is a name, a container is a process."""

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
