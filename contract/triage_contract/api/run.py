"""``TriageRun``: what to do, and how far it is."""

from typing import Annotated, Any, Final

from pydantic import AwareDatetime, ConfigDict, Field

from triage_contract.api.base import ATOMIC, ApiModel, ObjectName, Quantity, Rule, cut_to, immutable, matching
from triage_contract.api.conditions import Conditions
from triage_contract.api.metadata import ObjectMeta
from triage_contract.states import Cause, DecisionAction, Outcome, Phase

MAX_REPORT_LENGTH: Final = 65536
"""Characters of the longest report: at four bytes each a sixth of what etcd stores in an object."""

MAX_OUTPUT_LENGTH: Final = 16384
"""Characters to which the status cuts the agent's final text."""

MAX_MESSAGE_LENGTH: Final = 1024
"""Characters to which the status cuts the message of an attempt."""

ATTEMPTS_KEPT: Final = 10
"""Attempts that the status shows; the database keeps all."""

_YEAR_SECONDS: Final = 31_536_000
_ANOTHER: Final = "create another TriageRun"

Seconds = Annotated[int, Field(ge=1, le=_YEAR_SECONDS)]
Count = Annotated[int, Field(ge=0)]


class AgentRef(ApiModel):
    """A TriageAgent in the run's namespace."""

    model_config = ConfigDict(json_schema_extra=ATOMIC)

    name: ObjectName = "default"
    """Name of the TriageAgent."""


class Decision(ApiModel):
    """What a person decides about a call in doubt."""

    call: Annotated[str, Field(min_length=1, max_length=512)]
    """The call, as `status.waitingFor` names it."""
    attempt: Annotated[int, Field(ge=1)]
    """The attempt that began it, as `status.waitingFor` shows: the decision holds for no later one."""
    action: DecisionAction
    """`Done`: it happened, with `result`. `RunAgain`: it did not, or may happen twice. `Fail`: the run fails."""
    result: Annotated[
        dict[str, Any] | None, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ] = None
    """With `Done`, what the tool would have returned; the agent reads it. Absent: an empty object."""


_RESULT_OF_DONE: Final = Rule(
    cel="!has(self.result) || self.action == 'Done'",
    message="result belongs to action Done",
    holds=lambda decision: decision.result is None or decision.action is DecisionAction.DONE,
)


class RunSpec(ApiModel):
    """What to do. What was asked (`report`, `agentRef`) is immutable."""

    agent_ref: Annotated[AgentRef, immutable("agentRef", _ANOTHER)] = AgentRef()
    """The agent that does the work. The run waits while it does not exist. Immutable."""
    report: Annotated[
        str,
        Field(min_length=1, max_length=MAX_REPORT_LENGTH),
        matching(r"\S", "report must not be blank"),
        # Postgres stores no NUL in a text.
        matching(r"^[^\x00]*$", "report must hold no NUL"),
        immutable("report", _ANOTHER),
    ]
    """The text that the agent is given, such as a bug report: 1 to 65536 characters, no NUL. Immutable."""
    deadline_seconds: Seconds | None = None
    """Seconds from the run's creation until it fails, whatever it was doing or waiting for, a suspension
    included. Absent: no deadline."""
    start_deadline_seconds: Seconds | None = None
    """Seconds that an attempt's pod may take until its agent container runs; then the pod is removed and
    the run fails. Absent: a pod without a node waits for one without limit, and a start that is blocked
    otherwise (an image that cannot be pulled, a Secret that is not there) fails after the operator's own
    limit."""
    suspend: bool = False
    """True: no attempt is started, and the current one hands off at its next step. False: the run goes on
    there."""
    cancel: Annotated[bool, Rule(cel="self || !oldSelf", message="cancel cannot be taken back")] = False
    """True: the run ends as Cancelled and its pod is deleted. Cannot be taken back."""
    decisions: Annotated[
        tuple[Annotated[Decision, _RESULT_OF_DONE], ...],
        Field(
            max_length=64,
            json_schema_extra={
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["call", "attempt"],
            },
        ),
    ] = ()
    """Decisions about calls in doubt. Each is carried out once; one about a call that is not in doubt does
    nothing."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=_YEAR_SECONDS)] | None = None
    """Seconds after its end until the TriageRun is deleted; 0: at once. Absent: it stays."""


class AttemptStatus(ApiModel):
    """One attempt: one pod that worked on the run."""

    epoch: Annotated[int, Field(ge=1)]
    """Number of the attempt in its session, counted from 1."""
    pod: Annotated[str, Field(max_length=253)] | None = None
    """Name of the pod. Absent: it was not made yet."""
    node: Annotated[str, Field(max_length=253)] | None = None
    """Node of the pod. Absent: it never had one, or none was seen."""
    image: Annotated[str, Field(max_length=512)] | None = None
    """Image of the agent container."""
    cause: Cause | None = None
    """Why the attempt ended before its work did. Absent: it did not, or it still works."""
    outcome: Outcome | None = None
    """How the attempt ended. Absent: it still works."""
    memory_limit: Quantity | None = None
    """Memory limit of the agent container. Absent: none."""
    started_at: AwareDatetime | None = None
    """When the attempt was recorded, just before its pod was made."""
    ended_at: AwareDatetime | None = None
    """When the operator learned of the attempt's end. Absent: it still works."""
    message: Annotated[str, Field(max_length=MAX_MESSAGE_LENGTH), cut_to(MAX_MESSAGE_LENGTH)] | None = None
    """What was seen at its end, in a sentence."""


class WaitingCall(ApiModel):
    """A call that holds the run up until somebody decides or answers."""

    call: Annotated[str, Field(max_length=512)]
    """Its name in `spec.decisions`."""
    tool: Annotated[str, Field(max_length=253)]
    """Name of the tool."""
    attempt: Annotated[int, Field(ge=1)] | None = None
    """The attempt that began it. Absent: it waits for an answer, not for a decision."""
    arguments: Annotated[str, Field(max_length=MAX_MESSAGE_LENGTH), cut_to(MAX_MESSAGE_LENGTH)] | None = None
    """Its arguments as JSON, the first 1024 characters, credentials masked."""
    since: AwareDatetime | None = None
    """When it began."""
    why: Annotated[str, Field(max_length=MAX_MESSAGE_LENGTH), cut_to(MAX_MESSAGE_LENGTH)]
    """Why it holds the run up, in a sentence."""


class ToolCallCounts(ApiModel):
    """The run's tool calls over all attempts."""

    begun: Count = 0
    """Calls that began; one that began again after a loss counts once."""
    done: Count = 0
    """Calls whose result is known."""
    suppressed: Count = 0
    """Repeats that had no second effect: answered from the journal, or recognised by the tracker."""


class RunStatus(ApiModel):
    """How far the run is. Written by the operator only; all of it is derived again when it is lost."""

    phase: Phase | None = None
    """Pending: no attempt yet. Running: the first attempt is at work. Recovering: an attempt was lost, and
    the next one is at work or due. Waiting: a person is asked. Suspended: by `suspend`. Succeeded, Failed,
    Cancelled: over. Absent: no operator has seen the run yet."""
    conditions: Conditions = ()
    """`Finished`: True when the run is over, with the reason; False while it goes on. `Progressing`: True
    while an attempt is at work or the next one starts by itself; False when the run is over or something
    holds it up, which the reason and the message name. The operator sets both; absent: no operator has
    seen the run yet."""
    observed_generation: Count | None = None
    """Generation of the run that this status speaks of."""
    session: Annotated[str, Field(max_length=128)] | None = None
    """Id of the ADK session in the database."""
    invocation_id: Annotated[str, Field(max_length=128)] | None = None
    """Id of the ADK invocation in that session."""
    attempt: Count | None = None
    """Number of the current or last attempt. Absent: none was started."""
    attempts: Annotated[
        tuple[AttemptStatus, ...],
        Field(max_length=ATTEMPTS_KEPT, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """The last ten attempts, the oldest first."""
    resumes: Count = 0
    """Attempts that continued the work of a lost one."""
    no_progress: Count = 0
    """Attempts since the last progress that ended for a reason of their own and left nothing new; the run
    fails when this reaches the agent's `resume.maxNoProgress`."""
    tool_calls: ToolCallCounts = ToolCallCounts()
    """Tool calls over all attempts."""
    waiting_for: Annotated[
        tuple[WaitingCall, ...],
        Field(max_length=32, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = ()
    """Calls that hold the run up while its phase is Waiting."""
    last_cause: Cause | None = None
    """Why the last lost attempt was lost. Absent: none was lost."""
    recovery_seconds: Annotated[float, Field(ge=0)] | None = None
    """Seconds from the detection of the last loss to the first thing that the next attempt stored.
    Absent: nothing was lost, or nothing is stored yet."""
    issue: Annotated[str, Field(max_length=256)] | None = None
    """Number of the issue that the run filed. Absent: none."""
    output: Annotated[str, Field(max_length=MAX_OUTPUT_LENGTH), cut_to(MAX_OUTPUT_LENGTH)] | None = None
    """The agent's final text, its first 16384 characters. Absent: there is none yet."""


class TriageRun(ApiModel):
    """One piece of work for an agent, carried to its end over as many pods as it takes."""

    metadata: ObjectMeta
    """Metadata of the stored object."""
    spec: RunSpec
    """What to do."""
    status: RunStatus = RunStatus()
    """How far it is."""
