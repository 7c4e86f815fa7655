"""Settings in frozen groups: read once at the start, passed down."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingSettings:
    """How long the operator's decisions wait for what; see ``triage_operator.deciding``."""

    heartbeat_seconds: float = 2.0
    """Between two heartbeats of an agent. Each is one small UPDATE."""

    heartbeat_lapse_seconds: float = 15.0
    """Without a heartbeat, until a running attempt counts as unresponsive. Several heartbeats, so that a
    stall of the node's disk or network is not taken for death."""

    lock_grace_seconds: float = 0.5
    """From an attempt's free lock to its loss. A live process takes a lock that it lost again within this."""

    near_memory_limit: float = 0.85
    """Share of the memory limit from which a death without a word may be an OOM kill."""

    kubelet_word_seconds: float = 2.5
    """From the free lock of an attempt near its memory limit to its loss: the kubelet says within about two
    seconds whether memory was the cause, and then the next attempt needs more of it."""

    last_word_seconds: float = 10.0
    """From a loss of unknown cause to the end of its run for want of progress, since that end is for good."""

    deletion_slack_seconds: float = 2.0
    """Beyond a pod's grace period, until an attempt that neither released its fence nor ended is taken for
    lost."""

    start_limit_seconds: float = 300.0
    """From a pod's node to its running agent container, where the run sets no ``startDeadlineSeconds``."""

    claim_limit_seconds: float = 120.0
    """From the running container to the claim. An agent needs some seconds for its imports, on a busy node
    many."""

    leaving_seconds: float = 30.0
    """From an attempt's end to the deletion of a pod that still runs, for whatever in it does not end by
    itself."""

    refusal_retry_seconds: float = 10.0
    """Between two tries to make a pod that the API server refused."""

    retry_after_limit_seconds: float = 3600.0
    """Longest wait that a model's endpoint may ask for; ``deadlineSeconds`` is what bounds a run."""
