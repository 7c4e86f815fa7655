"""Errors of the agent process. Each message is one line without secrets, fit to be shown as it is."""

from triage_contract.exceptions import TriageError


class AgentError(TriageError):
    """Base of all errors that the agent package raises itself."""


class ConfigurationError(AgentError):
    """A setting, which the message names, is missing or wrong: the same settings never work."""


class TrackerError(AgentError):
    """The tracker refused, and filed nothing."""

    triage_not_performed = True


class UnansweredError(AgentError):
    """The tracker did not tell whether the issue is filed, by this call or by one before it of the same key."""


class UnservedError(AgentError):
    """A service refused a request, or could not be reached: the request has done nothing."""


class PageError(AgentError):
    """A page is not there, or is none that can be read. The message is for the model."""


class ReplayError(AgentError):
    """The file of recorded replies holds none for the request."""


class ToolFailedError(AgentError):
    """A tool with effects raised: whether they happened is not known, so the call stays begun."""


class InDoubtError(AgentError):
    """A call may have had its effect, and nobody may repeat it: somebody has to find out."""


class AppError(ConfigurationError):
    """The configured app cannot be imported, or is no ADK ``App``."""


class ShapeRefusedError(ConfigurationError):
    """The app's agent tree has a node that cannot be resumed safely; the message names it and says why."""


class RefusedError(AgentError):
    """A resume by hand that would do nothing, or harm."""
