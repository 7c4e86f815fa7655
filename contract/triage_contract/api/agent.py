"""``TriageAgent``: with what a run is done."""

from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from triage_contract.api.base import (
    ATOMIC,
    AbsolutePath,
    ApiModel,
    ObjectName,
    Quantity,
    Rule,
    SecretKeyRef,
    matching,
    one_of,
)
from triage_contract.api.conditions import Conditions
from triage_contract.api.metadata import ObjectMeta
from triage_contract.names import GROUP
from triage_contract.states import InDoubt, Pooler, RolloutStrategy, ToolKind

DOCS_TRIAGE_APP: Final = "triage_agent.docs_triage.agent:app"
"""The agent that comes with the project."""


class Model(ApiModel):
    """The language model behind the docs-triage agent."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the model. `provider/name` goes through LiteLLM, `replay:FILE` to recorded replies, anything
    else to Gemini."""
    base_url: (
        Annotated[
            str,
            Field(max_length=2048),
            matching(
                r"^https?://[^\s/?#@]+([/?#]\S*)?$",
                "baseUrl must be an http or https URL without user and password",
            ),
        ]
        | None
    ) = None
    """URL of the model's endpoint, without a user or password. Absent: the provider's."""
    api_key_secret_ref: SecretKeyRef | None = None
    """Where the API key is. Absent: none is given to the agent."""


class Database(ApiModel):
    """The Postgres database that keeps sessions, journal and issues, as the agent's pods reach it.

    Required: the operator has no URL that it could hand on instead. Its own belongs to a role that may move
    fences and read tokens, so an agent with it could write for another attempt; and a pod can only be given
    Secrets of its own namespace.
    """

    url_secret_ref: SecretKeyRef
    """Where the URL is: `postgresql://…`, with the agents' role and its password."""
    direct_url_secret_ref: SecretKeyRef | None = None
    """Where a URL is that leads past the pooler, for locks and notifications. Absent: `urlSecretRef`
    serves, or nothing where a pooler is in the way: a loss is then noticed by the pod and the heartbeat
    only."""
    pooler: Pooler = Pooler.NONE
    """`transaction`: `urlSecretRef` leads through a pooler that gives each transaction another connection,
    such as PgBouncer in that mode. `none`: each connection is the client's own."""


class PostgresTracker(ApiModel):
    """Issues in the table `triage.issues` of the database."""


class FileTracker(ApiModel):
    """Issues in one JSON file."""

    path: AbsolutePath
    """Absolute path in the agent's container, on a volume from `podTemplate` that outlives the pod and
    that all pods of the agent share."""


class GitHubTracker(ApiModel):
    """Issues of a repository on GitHub, or on a GitHub Enterprise Server.

    Each issue ends in an HTML comment with a digest of its call's key, by which it is found again after a loss.
    """

    repository: Annotated[
        str,
        Field(max_length=140),
        matching(
            r"^[A-Za-z0-9_-]+/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$",
            "repository must be owner/name, such as acme/docs",
        ),
    ]
    """The repository, as `owner/name`."""
    token_secret_ref: SecretKeyRef
    """Where a token is that may read and write the repository's issues."""
    base_url: (
        Annotated[
            str,
            Field(max_length=2048),
            matching(
                r"^(https://[^\s/?#@]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?)(/[^\s?#]*)?$",
                "baseUrl must be an https URL without user, password and query; http only to the pod itself",
            ),
        ]
        | None
    ) = None
    """URL of the REST API, such as `https://github.example/api/v3`. Absent: `https://api.github.com`."""


class Tracker(ApiModel):
    """Where the docs-triage agent files issues."""

    postgres: PostgresTracker | None = None
    """In the database itself."""
    file: FileTracker | None = None
    """In a file."""
    github: GitHubTracker | None = None
    """On GitHub."""


class ConfigMapRef(ApiModel):
    """A ConfigMap in the agent's namespace."""

    model_config = ConfigDict(json_schema_extra=ATOMIC)

    name: ObjectName
    """Name of the ConfigMap."""


class Docs(ApiModel):
    """The Markdown pages that the docs-triage agent reads."""

    config_map_ref: ConfigMapRef | None = None
    """A ConfigMap, each key of which is a page, such as `tokens.md`."""
    path: AbsolutePath | None = None
    """Absolute path of a folder in the agent's container: part of its image, or a volume from
    `podTemplate`."""


Quantities = Annotated[dict[str, Quantity], Field(max_length=32)]


class Resources(ApiModel):
    """Resources of the agent container, as in a pod."""

    requests: Quantities = Field(default_factory=dict)
    """What the scheduler sets aside, by resource name, such as `memory: 256Mi`."""
    limits: Quantities = Field(default_factory=dict)
    """What the container may use at most, by resource name."""


Texts = Annotated[dict[str, str], Field(max_length=64)]

_OUR_LABELS: Final = f"{GROUP}/"
_FREE_LABELS: Final = Rule(
    cel=f"self.all(label, !label.startsWith('{_OUR_LABELS}'))",
    message=f"labels of {_OUR_LABELS} are the operator's",
    holds=lambda labels: not any(label.startswith(_OUR_LABELS) for label in labels),
)


class PodMetadata(ApiModel):
    """Metadata that the agent's pods get."""

    labels: Annotated[Texts, _FREE_LABELS] = Field(default_factory=dict)
    """Labels, none of them of `triage-operator.dev/`. Others that the operator sets win."""
    annotations: Texts = Field(default_factory=dict)
    """Annotations. These win over those of the operator."""


class PodTemplate(ApiModel):
    """What is merged into the pods of the agent."""

    metadata: PodMetadata = PodMetadata()
    """Labels and annotations."""
    spec: dict[str, Any] = Field(
        default_factory=dict, json_schema_extra={"x-kubernetes-preserve-unknown-fields": True}
    )
    """A PodSpec, merged as a strategic merge patch does: the container `agent` is the operator's, others
    are added. What makes an attempt one attempt stays the operator's: `restartPolicy`, and the agent's
    command and `TRIAGE_` variables. The API server checks it when a pod is made; what it says then is in
    the run's conditions."""


class Backoff(ApiModel):
    """Waiting times between attempts that make no progress. The first resume after progress is at once."""

    initial_seconds: Annotated[int, Field(ge=1, le=3600)] = 2
    """Seconds before the second resume in a row."""
    max_seconds: Annotated[int, Field(ge=1, le=86400)] = 300
    """Seconds that no wait exceeds."""
    factor: Annotated[float, Field(ge=1, le=10)] = 2
    """What each further wait is multiplied by; 1: all are the same."""


class MemoryGrowth(ApiModel):
    """More memory for an attempt that comes near its limit, in place where its node can, and for the one after an
    attempt that was killed for want of it."""

    factor: Annotated[float, Field(ge=1, le=10)] = 1.5
    """What the memory limit, and the request with it, is multiplied by; 1: nothing is raised."""
    limit: Quantity | None = None
    """Memory limit that is never exceeded, such as `1Gi`. Absent: four times the agent's own limit."""


_ORDERED: Final = Rule(
    # An API server checks the default {} too, before it fills it.
    cel="!has(self.initialSeconds) || !has(self.maxSeconds) || self.initialSeconds <= self.maxSeconds",
    message="initialSeconds must not exceed maxSeconds",
    holds=lambda backoff: backoff.initial_seconds <= backoff.max_seconds,
)


class Resume(ApiModel):
    """How often, when and with what a lost run is taken up again."""

    max_no_progress: Annotated[int, Field(ge=0, le=1000)] = 3
    """Attempts in a row that may end for a reason of their own (a crash, out of memory at the limit) and
    leave nothing new; then the run fails. Evictions, drains and lost nodes never count. 0: no attempt is
    ever resumed, whatever ended it."""
    max_attempts: Annotated[int, Field(ge=1, le=1000)] = 20
    """Attempts in all, whatever ended them and whatever they achieved; then the run fails."""
    backoff: Annotated[Backoff, _ORDERED] = Backoff()
    """Waiting times between attempts."""
    memory: MemoryGrowth = MemoryGrowth()
    """More memory before and after running out of it."""
    in_doubt: InDoubt = InDoubt.PARK
    """What happens to a call of a tool of no declared kind that began and whose end is not known. `Park`: the
    run waits for a decision. `Retry`: it runs again, and its effect may happen twice. `Fail`: the run fails."""


class Concurrency(ApiModel):
    """How much the agent does at once."""

    max_running: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Runs of this agent that may have a pod at the same time; others wait as Pending, the oldest first.
    Absent: no limit."""


class Rollout(ApiModel):
    """How a change of the agent reaches the runs that are at work."""

    strategy: RolloutStrategy = RolloutStrategy.NEXT_ATTEMPT
    """`NextAttempt`: a run's attempt goes on as it was made, and only its next one, if there is any, has the
    change. `Restart`: each attempt hands off at its next step, and its run goes on with the change."""
    max_unavailable: Annotated[int, Field(ge=1, le=100_000)] = 1
    """With `Restart`, how many runs may be between two attempts for it: from the request to hand off until
    the next attempt has written something. Where the changed agent does not work, the rollout stops at
    these."""


class AgentSpec(ApiModel):
    """With what runs are done. Changes hold from a run's next attempt on; see `rollout`."""

    image: Annotated[str, Field(min_length=1, max_length=512, pattern=r"^\S+$")]
    """Container image with the agent package in it."""
    app: Annotated[
        str,
        Field(max_length=253),
        matching(
            r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$",
            "app must be module:attribute, such as my_agents.support:app",
        ),
    ] = DOCS_TRIAGE_APP
    """The ADK `App` in the image, as `module:attribute`. By default the docs-triage agent."""
    model: Model | None = None
    """The docs-triage agent's model. Absent: its default. Other apps bring theirs."""
    database: Database
    """The database, as the agent's pods reach it. Required, since the operator's own URL is never handed
    on: its role may do what an agent must not."""
    tracker: Annotated[Tracker, one_of(Tracker)] | None = None
    """Where the docs-triage agent files issues; exactly one member. Absent: in the database."""
    docs: Annotated[Docs, one_of(Docs)] | None = None
    """The pages that the docs-triage agent reads; exactly one member. Absent: the pages that come with it."""
    tools: dict[str, ToolKind] = Field(default_factory=dict, max_length=256)
    """What repeating a call does, by the tool's name; this wins over what the code declares. `ReadOnly`:
    nothing. `Idempotent`: nothing more than the first, as the other side keeps the call's key. `Reconcile`: a
    function that the tool has in code finds out what became of a call. `Undeclared`: nobody knows, and
    `resume.inDoubt` holds."""
    resources: Resources = Resources()
    """Resources of the agent container."""
    pod_template: PodTemplate = PodTemplate()
    """What is merged into the agent's pods."""
    resume: Resume = Resume()
    """How lost runs are taken up again."""
    concurrency: Concurrency = Concurrency()
    """How much the agent does at once."""
    rollout: Rollout = Rollout()
    """How a change of what the agent gives to its pods reaches runs that are at work."""


class AgentStatus(ApiModel):
    """What the operator found out about the agent. Written by the operator only."""

    conditions: Conditions = ()
    """`Ready`: True when attempts can be started; False when something that the spec refers to is missing
    or cannot be used, and runs wait; absent: no operator has seen the agent yet. `ToolsDeclared`: False
    names the tools of no declared kind, to whose calls in doubt `resume.inDoubt` applies; absent: no
    attempt has told its tools yet. The operator sets both."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the agent that this status speaks of."""
    image: Annotated[str, Field(max_length=512)] | None = None
    """Image that the next attempt gets."""
    running: Annotated[int, Field(ge=0)] | None = None
    """Runs of this agent that have a pod."""


class TriageAgent(ApiModel):
    """An agent: its image, its model, its database, and how its lost runs are taken up again."""

    metadata: ObjectMeta
    """Metadata of the stored object."""
    spec: AgentSpec
    """With what runs are done."""
    status: AgentStatus = AgentStatus()
    """What the operator found out."""
