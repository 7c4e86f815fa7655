"""Settings in frozen groups: read once at the start, passed down."""

from dataclasses import dataclass, field

from triage_contract.database.url import DatabaseUrl
from triage_contract.states import Pooler


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingSettings:
    """How long the operator's decisions wait for what; see ``triage_operator.deciding``."""

    heartbeat_seconds: float = 2.0
    """Between two heartbeats of an agent. Each is one small UPDATE."""

    heartbeat_lapse_seconds: float = 15.0
    """Without a heartbeat, until a running attempt counts as unresponsive. Several heartbeats, so that a
    stall of the node's disk or network is not taken for death."""

    lock_grace_seconds: float = 0.2
    """From an attempt's free lock to its loss. A live process takes a lock that it lost again within a quarter of
    this, on a busy machine."""

    kubelet_word_seconds: float = 2.5
    """From the free lock of an attempt near its memory limit to its loss: the kubelet says within about two
    seconds whether memory was the cause, and then the next attempt needs more of it."""

    raise_seconds: float = 5.0
    """From asking a pod's node for more memory to asking the attempt to hand off to a bigger pod. A node that has room
    gives it within two seconds."""

    last_word_seconds: float = 10.0
    """From a loss of unknown cause to the end of its run for want of progress, since that end is for good."""

    evidence_seconds: float = 30.0
    """Between two looks whether the node of a call in doubt was declared out of service."""

    deletion_slack_seconds: float = 2.0
    """Beyond a pod's grace period, until an attempt that neither released its fence nor ended is taken for lost."""

    start_limit_seconds: float = 300.0
    """From a pod's node to its running agent container, where the run sets no ``startDeadlineSeconds``."""

    claim_limit_seconds: float = 120.0
    """From the running container to the claim. An agent needs some seconds for its imports, on a busy node many."""

    leaving_seconds: float = 30.0
    """From an attempt's end to the deletion of a pod that still runs, for whatever in it does not end by itself."""

    refusal_retry_seconds: float = 10.0
    """Between two tries to make a pod that the API server refused."""

    retry_after_limit_seconds: float = 3600.0
    """Longest wait that a model's endpoint may ask for; ``deadlineSeconds`` is what bounds a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeSettings:
    """How the API server is reached."""

    config: str | None = None
    """Path of a kubeconfig. None: the pod's service account, else the user's kubeconfig."""

    context: str | None = None
    """Context in the kubeconfig. None: its current one."""

    requests_per_second: float = 300.0
    """Requests in the long run. A launch takes about ten."""

    burst: int = 600
    """Requests at once."""

    request_timeout_seconds: float = 10.0
    """For one request, so that a connection that is half open holds nothing up."""

    patience_seconds: float = 15.0
    """For all tries of a request; a wait that the server asks for beyond this is left to the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Which operator of several works."""

    namespace: str
    """Namespace of the Lease: the operator's own."""

    name: str = "triage-operator"
    """Name of the Lease. Operators of one Lease stand by for each other."""

    identity: str
    """Who this operator is. Whoever starts again under the same identity goes on at once, so it has to be
    unique among the processes that run at the same time: the pod's name is."""

    duration_seconds: int = 15
    """From the last renewal that a standby saw until it takes over."""

    renew_deadline_seconds: float = 10.0
    """From the last renewal until the leader stops by itself, well before a standby takes over."""

    retry_seconds: float = 1.0
    """Between two renewals, or two looks of a standby: one request each."""

    release_seconds: float = 3.0
    """For giving the Lease back at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilingSettings:
    """How the operator goes about its runs."""

    workers: int = 16
    """Runs that are worked on at once. Each waits for the API server or the database most of the time."""

    retry_seconds: float = 0.25
    """Before the second try of a pass that failed; doubled for each further one, and jittered."""

    retry_max_seconds: float = 30.0
    """Longest wait between two tries of a pass."""

    sweep_seconds: float = 20.0
    """Between two comparisons of what should be with what is. Watches only make it faster."""

    resync_seconds: float = 600.0
    """Between two passes over every unfinished run, whether anything seems to have changed or not."""

    agent_status_seconds: float = 2.0
    """From a change that concerns an agent's status to its write, so that many changes make one."""

    look_seconds: float = 0.1
    """Between two looks at the locks of all attempts: one query, of 4 ms for 1,000 of them."""

    reconnect_seconds: float = 1.0
    """Before the database is tried again, by what listens and looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """The database, as the operator reaches it: as the owner of the schema, or with its rights."""

    url: str = field(repr=False)
    """``postgresql://…``, of a role that owns the schema. A secret: give it by the environment."""

    direct_url: str | None = field(default=None, repr=False)
    """A URL past a pooler, for LISTEN. None: the same URL, or no LISTEN where a pooler is in the way."""

    pooler: Pooler = Pooler.NONE
    """What stands between: ``none``, or ``transaction`` for a pooler in transaction mode."""

    pool_size: int = 8
    """Connections that are kept. Half as many as workers, who wait for the API server as well."""

    def locate(self) -> DatabaseUrl:
        """Read the URLs.

        Raises:
            DatabaseUrlError: one of them is none.
        """
        return DatabaseUrl.parse(self.url, direct_dsn=self.direct_url, pooler=self.pooler)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingSettings:
    """Where metrics and health are served: ``/metrics``, ``/healthz`` and ``/readyz``."""

    host: str = "0.0.0.0"  # noqa: S104
    """Address to serve on; a pod is scraped from outside."""

    port: int = 8080
    """Port to serve on; 0: any free one."""

    stale_seconds: float = 120.0
    """Without a sweep or a word on a watch, until liveness turns red, and the operator is started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. ``namespaces`` empty: all are watched. ``cluster_id`` None: the UID of ``kube-system``."""

    namespaces: tuple[str, ...]
    cluster_id: str | None
    database: DatabaseSettings
    kube: KubeSettings
    lease: LeaseSettings
    serving: ServingSettings
    reconciling: ReconcilingSettings
    deciding: DecidingSettings
