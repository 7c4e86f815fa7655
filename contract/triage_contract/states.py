"""Closed sets of values that live in the database, in specs and status, and in metrics. Never renamed."""

from enum import IntEnum, StrEnum


class Phase(StrEnum):
    """Phase of a TriageRun. Written by the operator."""

    PENDING = "Pending"
    RUNNING = "Running"
    RECOVERING = "Recovering"
    WAITING = "Waiting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def terminal(self) -> bool:
        """Whether no attempt ever follows."""
        return self in (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED)


class RunState(StrEnum):
    """State of a run's row. At most one ``ACTIVE`` row per session. Written by the operator, or by hand."""

    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Verdict(StrEnum):
    """What the stored events, the run's row and the journal say of an invocation."""

    NOT_STARTED = "not_started"
    INTERRUPTED = "interrupted"
    WEDGED = "wedged"
    IN_DOUBT = "in_doubt"
    WAITING = "waiting"
    FINISHED = "finished"
    FAILED = "failed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


class CallState(StrEnum):
    """State of a journaled tool call. Written by the agent; a person's ``SETTLED`` by the operator, or by hand."""

    BEGUN = "begun"
    DONE = "done"
    RAISED = "raised"
    """The tool raised, and the error was its result."""
    GATED = "gated"
    """Nothing ran: a confirmation or a credential was asked for, or a callback failed before the tool was reached."""
    SETTLED = "settled"
    """A call in doubt whose result came without running it: its outside world, or a person, knew."""


class ToolKind(StrEnum):
    """What repeating a tool call does to the world. Declared in code or in the TriageAgent."""

    READ_ONLY = "ReadOnly"
    """Nothing: it runs again."""
    IDEMPOTENT = "Idempotent"
    """Nothing more than the first, since the other side keeps the call's key: it runs again under that key."""
    RECONCILE = "Reconcile"
    """A function of the tool's asks the outside world what became of a call."""
    UNDECLARED = "Undeclared"
    """Nobody said: the agent's ``resume.inDoubt`` holds."""


class InDoubt(StrEnum):
    """What happens to an undeclared call that began and whose end is not known. Set in a TriageAgent."""

    PARK = "Park"
    RETRY = "Retry"
    FAIL = "Fail"


class Doubt(StrEnum):
    """What is known of a begun call beside that it began. Written by the agent."""

    RAISED = "raised"
    """It ended in its process with an error which does not say that nothing happened."""
    UNKNOWN = "unknown"
    """Its outside world was asked and could not tell."""
    NOT_HAPPENED = "not_happened"
    """Its outside world was asked and had not seen it; its process may still have been alive."""


class Settled(StrEnum):
    """What its outside world says of a call in doubt. Written by the agent."""

    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    UNKNOWN = "unknown"


class DecisionAction(StrEnum):
    """What a person decides about a call in doubt. Set in a TriageRun."""

    DONE = "Done"
    RUN_AGAIN = "RunAgain"
    FAIL = "Fail"


class RolloutStrategy(StrEnum):
    """What becomes of attempts at work when their agent changes. Set in a TriageAgent."""

    NEXT_ATTEMPT = "NextAttempt"
    RESTART = "Restart"


class Pooler(StrEnum):
    """What stands between a process and Postgres. Set in a TriageAgent and in the operator's settings."""

    NONE = "none"
    TRANSACTION = "transaction"
    """Statements of one connection may reach several backends: no session settings, locks or LISTEN."""


class Suppressor(StrEnum):
    """Where a duplicate was suppressed."""

    JOURNAL = "journal"
    TRACKER = "tracker"


class Outcome(StrEnum):
    """How an attempt ended. The agent writes its own, the operator writes ``LOST`` and ``CANCELLED``."""

    FINISHED = "finished"
    WAITING = "waiting"
    HANDED_OFF = "handed_off"
    FAILED = "failed"
    """The invocation ended in an error that counts: the row's ``error`` says which."""
    MODEL_UNAVAILABLE = "model_unavailable"
    """The model's endpoint did not answer or asked for patience: ``retry_after_seconds`` says how long, if it did."""
    UNKNOWN_INVOCATION = "unknown_invocation"
    IN_DOUBT = "in_doubt"
    BAD_CONFIGURATION = "bad_configuration"
    LOST = "lost"
    CANCELLED = "cancelled"


class Cause(StrEnum):
    """Why an attempt ended without finishing its invocation. Written by the operator."""

    OOM = "oom"
    SHORT_OF_MEMORY = "short_of_memory"
    """It was near its memory limit, its node could not raise that in place, and it handed off to a bigger pod."""
    SIGTERM = "sigterm"
    SIGKILL = "sigkill"
    NODE_PRESSURE = "node_pressure"
    STORAGE_LIMIT = "storage_limit"
    NODE_SHUTDOWN = "node_shutdown"
    DRAIN = "drain"
    PREEMPTED = "preempted"
    DELETED = "deleted"
    ROLLOUT = "rollout"
    NODE_LOST = "node_lost"
    NODE_UNREACHABLE = "node_unreachable"
    NODE_GONE = "node_gone"
    NODE_OUT_OF_SERVICE = "node_out_of_service"
    STATUS_UNKNOWN = "status_unknown"
    VANISHED = "vanished"
    REJECTED = "rejected"
    DELETED_PENDING = "deleted_pending"
    BAD_CONFIG = "bad_config"
    NO_DATABASE = "no_database"
    APP_ERROR = "app_error"
    MODEL_ERROR = "model_error"
    EXIT0_UNFINISHED = "exit0_unfinished"
    UNRESPONSIVE = "unresponsive"
    STALLED = "stalled"
    SUSPENDED = "suspended"


class ExitCode(IntEnum):
    """Exit codes of an agent process. Written by the agent; the database decides, these only hint."""

    FINISHED = 0
    WAITING = 80
    HANDED_OFF = 81
    ALREADY_FINISHED = 82
    UNKNOWN_INVOCATION = 83
    FENCED = 84
    IN_DOUBT = 85
    BAD_CONFIGURATION = 86
    DATABASE_UNREACHABLE = 87
    FAILED = 88
    """The invocation ended in an error event, such as a model endpoint that refuses."""
