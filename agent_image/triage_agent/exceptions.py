"""Errors of the agent process. Each message is one line without secrets, fit to be shown as it is."""

from triage_contract.exceptions import TriageError


class AgentError(TriageError):
    """Base of all errors that the agent package raises itself."""


class ConfigurationError(AgentError):
    """A setting, which the message names, is missing or wrong: the same settings never work."""


class TrackerError(AgentError):
    """The tracker refused, and filed nothing."""


class ReplayError(AgentError):
    """The file of recorded replies holds none for the request."""
