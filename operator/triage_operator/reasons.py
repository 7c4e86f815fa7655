"""Reasons of decisions: the words in conditions, Events, metrics and logs. Never renamed."""

from enum import StrEnum


class Reason(StrEnum):
    """Why an action was decided. CamelCase, as Kubernetes wants condition reasons.

    Each says what it means and, after "To do:", what it asks of a person; the page about conditions is made of it.
    """

    STARTING = "Starting"
    """The first attempt is recorded and its pod made."""
    RUNNING = "Running"
    """An attempt is at work."""
    PENDING = "Pending"
    """An attempt's pod was made, and its process has not begun."""
    QUEUED = "Queued"
    """All places of the agent's `concurrency.maxRunning` are taken; the oldest run goes first. To do:
    Nothing, or raise the limit."""
    SUSPENDED = "Suspended"
    """`spec.suspend` is set: no attempt starts. To do: Set it to false to go on."""
    OUTDATED = "Outdated"
    """An attempt is at work that its agent, changed since, is to replace: as many runs as
    `rollout.maxUnavailable` says are between two attempts. To do: Nothing; where it lasts, look what keeps those
    from going on."""
    HANDING_OFF = "HandingOff"
    """The attempt is to stop at its next step: suspended, its node is about to go or has no more memory for it, or its
    agent has changed."""
    HANDED_OFF = "HandedOff"
    """An attempt gave its work back at a step, with nothing left half done."""
    RAISING_MEMORY = "RaisingMemory"
    """A running attempt came near its memory limit: a higher one is asked for in place."""
    MEMORY_REFUSED = "MemoryRefused"
    """A running attempt came near its memory limit, and a quota or a LimitRange refuses more, to the next attempt
    as well. To do: Give room, or lower `resume.memory.limit`."""
    LOST = "Lost"
    """An attempt is lost, or it is waited for word of what became of it. `lastCause` says why."""
    RESUMING = "Resuming"
    """The next attempt goes on where the last one stopped."""
    REPAIRED = "Repaired"
    """The session was put right before the agent went on: ADK would have passed a call over."""
    BACKING_OFF = "BackingOff"
    """The last attempts left nothing new, so that the next one waits its time."""
    COMPLETED = "Completed"
    """The agent has said its last word."""
    INPUT_REQUIRED = "InputRequired"
    """A call waits for an answer from outside, such as a confirmation; `status.waitingFor` shows it. To do:
    Answer it in the session."""
    IN_DOUBT = "InDoubt"
    """A call began, and nobody knows whether it happened; `status.waitingFor` shows it. A failed run: the
    agent's `resume.inDoubt` or a person wanted that. To do: Look whether it happened, and decide in
    `spec.decisions`: `Done` with its result, `RunAgain` or `Fail`."""
    DECIDED = "Decided"
    """A decision about a call in doubt was carried out."""
    DECISION_IGNORED = "DecisionIgnored"
    """A decision matches no call in doubt, and does nothing; the message says why. To do: Take `call` and
    `attempt` from `status.waitingFor`."""
    CANCELLED = "Cancelled"
    """`spec.cancel` ended the run."""
    FAILED = "Failed"
    """The agent ended in an error that no resume could change, or an attempt in one that the next may mend.
    To do: Read the message; where the run is over, mend the agent and create another run."""
    DELETED = "Deleted"
    """The TriageRun was deleted while it was at work: its row is closed."""
    ABORTED = "Aborted"
    """Its user aborted the invocation. It is never revived."""
    MODEL_ERROR = "ModelError"
    """The model's endpoint refuses the conversation again and again; the message has its words. To do: Mend
    what it complains of, such as model or key, and create another run."""
    MODEL_UNAVAILABLE = "ModelUnavailable"
    """The model's endpoint does not answer or asks for patience. No budget is used up. To do: Nothing, unless
    it lasts."""
    NO_PROGRESS = "NoProgress"
    """Attempts in a row ended by their own fault and left nothing new; the message names cause and tool. To
    do: Mend the tool, or raise memory or `resume.maxNoProgress`, and create another run."""
    TOO_MANY_ATTEMPTS = "TooManyAttempts"
    """`resume.maxAttempts` is used up. To do: Find out why attempts are lost; create another run."""
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    """The run was not over by `spec.deadlineSeconds`. To do: Create another run, with more time."""
    START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"
    """An attempt's container did not start in time; the message says what held it up. To do: Mend that, and
    create another run."""
    START_BLOCKED = "StartBlocked"
    """A pod cannot start: its image cannot be pulled, or a Secret or ConfigMap is missing. To do: Mend that:
    the run goes on by itself, or fails at its start deadline."""
    UNSCHEDULABLE = "Unschedulable"
    """No node takes the pod. To do: Make room, or loosen what the pod asks for."""
    BAD_CONFIGURATION = "BadConfiguration"
    """The run cannot be read, or the agent cannot be run as it is configured; the message names the field. To
    do: Mend it, and create another run where this one is over."""
    UNKNOWN_AGENT = "UnknownAgent"
    """There is no such TriageAgent. To do: Create it: the run waits."""
    BAD_AGENT = "BadAgent"
    """The TriageAgent cannot be used; the message names the field. To do: Mend it: its runs wait."""
    UNKNOWN_INVOCATION = "UnknownInvocation"
    """The database has no such session or invocation, or its events are gone. To do: Look who deleted it;
    create another run."""
    DATABASE_UNREACHABLE = "DatabaseUnreachable"
    """The operator does not reach the database, or its schema is too old. To do: Mend it: the run waits, and
    its agent works on."""
    DATABASE_BEHIND = "DatabaseBehind"
    """The status shows an attempt that the database does not know: it is an older copy, as after a failover.
    What was done since could be done twice. To do: Restore the newer database, or cancel the run; or clear
    `status.attempts` where a repeat does no harm."""
    BY_HAND = "ByHand"
    """An attempt was begun by `triage resume`, outside of the cluster. To do: Nothing: the operator goes on
    when it has ended."""
    READY = "Ready"
    """Attempts can be started."""
    TOOLS_DECLARED = "ToolsDeclared"
    """Of each known tool it is declared what repeating it does."""
    TOOLS_UNDECLARED = "ToolsUndeclared"
    """Of some tools nobody declared what repeating them does; the message names them, and what becomes of
    their calls in doubt. To do: Declare them, in code or in `spec.tools`."""
    POD_REFUSED = "PodRefused"
    """The API server refused the pod: a quota, a policy, a field of the pod template. To do: Mend that, or
    give room: it is tried again."""
    FOREIGN_POD = "ForeignPod"
    """Another's pod has the name that the attempt's pod should have: another name is taken."""
    CLEANING_UP = "CleaningUp"
    """A pod that still ran after the end of its attempt is deleted."""
    EXPIRED = "Expired"
    """`spec.ttlSecondsAfterFinished` is over: the TriageRun is deleted."""
