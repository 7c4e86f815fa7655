"""Errors of the agent process. Each message is one line without secrets, fit to be shown as it is."""


class AgentError(Exception):
    """Base of all errors that the agent package raises itself."""


class ConfigurationError(AgentError):
    """A setting, which the message names, is missing or wrong: the same settings never work."""


class TrackerError(AgentError):
    """The tracker refused, and filed nothing."""


class TrackerUnavailableError(AgentError):
    """The tracker was out of reach for long. It may have filed the issue: the same key finds out."""


class ReplayError(AgentError):
    """The file of recorded replies holds none for the request."""
