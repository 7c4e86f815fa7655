"""Errors of the contract package. None of their messages holds a secret."""


class TriageError(Exception):
    """Base of every error that triage-operator raises itself."""


class QuantityError(TriageError, ValueError):
    """A text that is no Kubernetes quantity."""


class ApiError(TriageError):
    """An object of our API that cannot be used; the message is one line and names the object and the fields."""


class DatabaseError(TriageError):
    """Base of the errors of the database layer."""


class DatabaseUrlError(DatabaseError):
    """A database URL that cannot be read."""


class DatabaseUnreachableError(DatabaseError):
    """Nobody answers at the database's address, or it refuses this client."""


class SchemaError(DatabaseError):
    """The database lacks our tables, functions or triggers, or has older ones."""


class FencedError(DatabaseError):
    """The fence moved: this attempt is no longer the current one and may not write."""


class AlreadyClaimedError(DatabaseError):
    """Another process claimed this attempt before."""


class CallRunningError(DatabaseError):
    """The attempt cannot release its fence while a tool call of it runs."""


class SessionStaleError(DatabaseError):
    """Another process wrote to the session since this one read it."""


class SessionMissingError(DatabaseError):
    """There is no such session."""


class EpochMovedError(DatabaseError):
    """Somebody else moved the fence since it was observed: observe again."""


class SessionBusyError(DatabaseError):
    """Another run of the same session is active."""
