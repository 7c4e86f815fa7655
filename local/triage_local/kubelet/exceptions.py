"""Errors of the process kubelet."""

from triage_local.exceptions import LocalClusterError


class KubeletError(LocalClusterError):
    """Base of all errors here."""


class ClusterError(KubeletError):
    """The API server refused a request, or could not be reached."""

    def __init__(self, status: int, message: str) -> None:
        """Keep both.

        Args:
            status: HTTP status; 0 where there was no answer.
            message: What the server said.
        """
        super().__init__(message)
        self.status = status


class NoSuchContainerError(KubeletError):
    """No container of this name has a process here."""


class NotSupportedError(KubeletError):
    """A pod asks for something that processes without a container cannot have, or that nobody here needs."""


class NotYetError(KubeletError):
    """A container cannot start for now. It is tried again, and its status says why it waits."""

    def __init__(self, reason: str, message: str) -> None:
        """Keep both.

        Args:
            reason: Reason of the waiting state, as a real kubelet says it.
            message: Its message.
        """
        super().__init__(message)
        self.reason = reason


class StartError(KubeletError):
    """The program of a container could not be executed."""
