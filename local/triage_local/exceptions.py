"""Errors of the local cluster as a whole, and the base of those of its parts."""


class LocalClusterError(Exception):
    """The cluster cannot do what it should. The message is for people, and holds no secret."""


class ProgramError(LocalClusterError):
    """A program of this environment is missing, or ended as it should not have."""


class PatienceError(LocalClusterError):
    """Something that was waited for did not come."""
