"""Runs, agents and attempts for decision tests, and decisions in one readable line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from support.clock import NOW, ago
from support.pods import PodBuilder, a_pod
from triage_contract.api import TriageAgent, TriageRun, parse_agent, parse_run
from triage_contract.database.rows import AttemptRow, FenceRow, RunRow, SessionKey
from triage_contract.quantities import format_memory
from triage_contract.states import Cause, Outcome, RunState, Verdict
from triage_contract.verdict import Call, DoubtfulCall, Judgement, Remedy
from triage_operator.actions import (
    Action,
    CarryOutDecision,
    ConfirmDeath,
    CreatePod,
    DeletePod,
    DeleteRun,
    EndAttempt,
    EndRun,
    FillCause,
    OpenAttempt,
    RaiseMemory,
    RequestHandoff,
    Wait,
)
from triage_operator.deciding import decide
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import (
    CallCounts,
    Handovers,
    JournaledCall,
    LifeSign,
    Pod,
    Refusal,
    Snapshot,
)

RUN_UID = "4f1a2b3c-0000-4000-8000-000000000001"
SETTINGS = DecidingSettings()
SESSION = SessionKey(app_name="docs/default", user_id="triage", session_id=f"run-{RUN_UID}")
NO_CALLS = CallCounts(begun=0, done=0, suppressed_by_journal=0, suppressed_by_tracker=0)
MEBIBYTE = 1024**2


def a_triage_run(**spec: Any) -> TriageRun:
    metadata = {
        "name": "tokens",
        "namespace": "docs",
        "uid": RUN_UID,
        "creationTimestamp": "2026-03-01T11:00:00Z",
        "generation": 1,
    }
    return parse_run({"metadata": metadata, "spec": {"report": "Tokens do expire.", **spec}})


def a_triage_agent(**spec: Any) -> TriageAgent:
    metadata = {
        "name": "default",
        "namespace": "docs",
        "uid": "agent-uid",
        "creationTimestamp": "2026-03-01T10:00:00Z",
    }
    needed = {
        "image": "docs-triage:1",
        "database": {"urlSecretRef": {"name": "triage-database", "key": "url"}},
        "resources": {"limits": {"memory": "256Mi"}},
    }
    return parse_agent({"metadata": metadata, "spec": {**needed, **spec}})


def an_attempt(**fields: Any) -> AttemptRow:
    """An attempt that was claimed a minute ago and is well."""
    row = AttemptRow(
        serial=0,
        run_id=UUID(RUN_UID),
        epoch=0,
        pod="run-a1",
        pod_uid="pod-uid-1",
        node="node-a",
        image="docs-triage:1",
        memory_limit_bytes=256 * MEBIBYTE,
        created_at=ago(65),
        started_at=None,
        claimed_at=ago(60),
        heartbeat_at=ago(1),
        first_write_at=None,
        sigterm_at=None,
        handoff_requested_at=None,
        handoff_reason=None,
        released_at=None,
        lost_at=None,
        ended_at=None,
        confirmed_at=None,
        memory_used_bytes=100 * MEBIBYTE,
        replies=0,
        calls_done=0,
        events=0,
        prompt_tokens=0,
        output_tokens=0,
        outcome=None,
        cause=None,
        counted=None,
        exit_code=None,
        error=None,
        retry_after_seconds=None,
        recovery_counted=False,
    )
    return replace(row, **fields)


def unclaimed(**fields: Any) -> AttemptRow:
    """An attempt whose pod was made and whose process has not claimed it."""
    return an_attempt(**{"created_at": ago(5), "claimed_at": None, "heartbeat_at": None, **fields})


def podless(**fields: Any) -> AttemptRow:
    """An attempt that was recorded, and no more."""
    return unclaimed(**{"pod_uid": None, "node": None, **fields})


def released(outcome: Outcome, **fields: Any) -> AttemptRow:
    """An attempt that gave its token up and has not ended in our books."""
    return an_attempt(released_at=NOW, outcome=outcome, **fields)


def lost(cause: Cause | None, **fields: Any) -> AttemptRow:
    """An attempt that was lost just now, left nothing new, and whose process is known to be dead."""
    counted = cause in (None, Cause.SIGKILL, Cause.APP_ERROR, Cause.EXIT0_UNFINISHED, Cause.UNRESPONSIVE)
    ended = {"outcome": Outcome.LOST, "cause": cause, "counted": counted, "lost_at": NOW, "ended_at": NOW}
    return an_attempt(**{**ended, "confirmed_at": NOW, **fields})


def ended(outcome: Outcome, cause: Cause | None = None, **fields: Any) -> AttemptRow:
    """An attempt that ended just now otherwise than by a loss."""
    return an_attempt(**{"outcome": outcome, "cause": cause, "counted": False, "ended_at": NOW, **fields})


def _numbered(row: AttemptRow, epoch: int) -> AttemptRow:
    """Number an attempt; its pod too, unless the test gave that names of its own."""
    pod = f"run-a{epoch}" if row.pod == "run-a1" else row.pod
    pod_uid = f"pod-uid-{epoch}" if row.pod_uid == "pod-uid-1" else row.pod_uid
    return replace(row, serial=100 + epoch, epoch=epoch, pod=pod, pod_uid=pod_uid)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A snapshot to be; each method gives another one in which that is so too."""

    now: datetime = NOW
    spec: Mapping[str, Any] = field(default_factory=dict)
    agent: TriageAgent | None = field(default_factory=a_triage_agent)
    agent_error: str | None = None
    rows: tuple[AttemptRow, ...] = ()
    state: RunState = RunState.ACTIVE
    reason: str | None = None
    ended_at: datetime | None = None
    judgement: Judgement | None = None
    pods: Mapping[int, Pod] = field(default_factory=dict)
    last_pods: Mapping[int, Pod] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def asking(self, **spec: Any) -> "Scenario":
        return replace(self, spec={**self.spec, **spec})

    def of_agent(self, **spec: Any) -> "Scenario":
        return replace(self, agent=a_triage_agent(**spec))

    def resuming(self, **resume: Any) -> "Scenario":
        return self.of_agent(resume=resume)

    def without_agent(self, error: str | None = None) -> "Scenario":
        return replace(self, agent=None, agent_error=error)

    def attempted(self, *rows: AttemptRow) -> "Scenario":
        """Give the run these attempts, numbered from 1; its invocation has begun."""
        numbered = tuple(_numbered(row, epoch) for epoch, row in enumerate(rows, start=1))
        return replace(self, rows=numbered).judged(Verdict.INTERRUPTED)

    def judged(self, verdict: Verdict, *, calls: tuple[str, ...] = (), **facts: Any) -> "Scenario":
        open_calls = tuple(Call(id=f"id-{name}", name=name) for name in calls)
        return replace(self, judgement=Judgement(verdict=verdict, why="Because.", calls=open_calls, **facts))

    def doubting(self, *calls: JournaledCall, remedy: Remedy = Remedy.PARK) -> "Scenario":
        """Have calls in doubt, about all of which the same is to be done."""
        doubts = tuple(
            DoubtfulCall(key=it.key, id=it.key, name=it.tool, epoch=it.epoch, remedy=remedy) for it in calls
        )
        return self.judged(Verdict.IN_DOUBT, doubts=doubts).where(journal=calls)

    def over(self, state: RunState, reason: str | None = None, at: datetime = NOW) -> "Scenario":
        return replace(self, state=state, reason=reason, ended_at=at)

    def with_pod(self, pod: PodBuilder, epoch: int | None = None) -> "Scenario":
        """Give an attempt a pod, by default the newest."""
        number = epoch or len(self.rows)
        return replace(self, pods={**self.pods, number: pod.numbered(number).json})

    def with_last_pod(self, pod: PodBuilder, epoch: int | None = None) -> "Scenario":
        number = epoch or len(self.rows)
        return replace(self, last_pods={**self.last_pods, number: pod.numbered(number).json})

    def with_lock_free_for(self, seconds: float) -> "Scenario":
        return self.where(life=LifeSign(lock_free_since=ago(seconds), reachable_since=ago(3600)))

    def reachable_for(self, seconds: float) -> "Scenario":
        return self.where(life=LifeSign(lock_free_since=None, reachable_since=ago(seconds)))

    def refused(self, *, at: datetime, passing: bool = False) -> "Scenario":
        return self.where(refusal=Refusal(message="pods is forbidden", at=at, passing=passing))

    def filing(self, number: str) -> "Scenario":
        return self.where(issue=number)

    def where(self, **facts: Any) -> "Scenario":
        return replace(self, extra={**self.extra, **facts})

    def snapshot(self) -> Snapshot:
        run = a_triage_run(**self.spec)
        is_recorded = bool(self.rows) or self.state is not RunState.ACTIVE
        row = RunRow(
            id=UUID(RUN_UID),
            cluster_id="cluster",
            namespace=run.metadata.namespace,
            name=run.metadata.name,
            agent=run.spec.agent_ref.name,
            session=SESSION,
            invocation_id=f"inv-{RUN_UID}",
            message={"parts": [{"text": run.spec.report}]},
            root=None,
            state=self.state,
            reason=self.reason,
            created_at=run.metadata.creation_timestamp,
            ended_at=self.ended_at,
        )
        facts: dict[str, Any] = {
            "now": self.now,
            "run": run,
            "agent": self.agent,
            "agent_error": self.agent_error,
            "row": row if is_recorded else None,
            "attempts": self.rows,
            "fence": self._fence(),
            "judgement": self.judgement,
            "journal": (),
            "repairs": (),
            "calls": NO_CALLS,
            "issue": None,
            "pods": self.pods,
            "last_pods": self.last_pods,
            "foreign_pod": False,
            "refusal": None,
            "resize": None,
            "parting_taints": (),
            "dead_nodes": frozenset(),
            "life": LifeSign(lock_free_since=None, reachable_since=ago(3600)),
            "running": 0,
            "ahead": 0,
            "handovers": Handovers(),
            **self.extra,
        }
        return Snapshot(**facts)

    def _fence(self) -> FenceRow | None:
        if not self.rows:
            return None
        newest = self.rows[-1]
        may_write = newest.ended_at is None and newest.released_at is None
        return FenceRow(epoch=newest.epoch, token="a-token" if may_write else None)

    def action(self, settings: DecidingSettings = SETTINGS) -> Action:
        return decide(self.snapshot(), settings)

    def decides(self) -> str:
        return shown(self.action())


def a_run() -> Scenario:
    """A run that nobody has looked at yet, of an agent that is well."""
    return Scenario()


def a_call(key: str = "call-1", **fields: Any) -> JournaledCall:
    """A call of an undeclared tool that the first attempt began."""
    call = JournaledCall(
        key=key,
        tool="send_mail",
        kind="Undeclared",
        state="begun",
        epoch=1,
        arguments='{"to": "ops"}',
        begun_at=ago(30),
        begun_times=1,
        doubt=None,
        doubt_message=None,
        cleared=False,
        decided=False,
    )
    return replace(call, **fields)


def at_work() -> Scenario:
    """A run whose first attempt is well."""
    return a_run().attempted(an_attempt()).with_pod(a_pod().running())


def table(*rows: tuple[str, Scenario, str]) -> Callable[..., Any]:
    """Parametrize a test by rows of a sentence, a scenario, and the decision as ``shown``."""
    cases = [pytest.param(scenario, expected, id=sentence) for sentence, scenario, expected in rows]
    return pytest.mark.parametrize(("scenario", "expected"), cases)


def shown(action: Action) -> str:
    """Show a decision in a line: what is done, the words that matter, and when the run is looked at again."""
    match action:
        case Wait():
            until = "" if action.until is None else f" until {(action.until - NOW).total_seconds():+g}"
            return f"Wait {action.phase} {action.reason}{until}"
        case OpenAttempt():
            limit = action.memory_limit_bytes
            memory = "no limit" if limit is None else format_memory(limit)
            return f"OpenAttempt after {action.observed_epoch} {action.reason} {memory}"
        case CreatePod():
            return f"CreatePod {action.serial} {action.reason}{' next name' if action.next_name else ''}"
        case EndAttempt():
            counted = " counted" if action.counted else ""
            code = "" if action.exit_code is None else f" exit {action.exit_code}"
            return f"EndAttempt {action.serial} {action.outcome} {action.cause or '-'} {action.reason}{code}{counted}"
        case FillCause():
            return f"FillCause {action.serial} {action.cause}{' counted' if action.counted else ''}"
        case ConfirmDeath():
            return f"ConfirmDeath {action.serial}"
        case CarryOutDecision():
            return f"CarryOutDecision {action.call} of {action.epoch} {action.decided} {dict(action.result)}"
        case RequestHandoff():
            return f"RequestHandoff {action.serial} {action.cause}"
        case RaiseMemory():
            return f"RaiseMemory {action.serial} {format_memory(action.limit_bytes)}"
        case DeletePod():
            return f"DeletePod {action.name} {action.uid}"
        case EndRun():
            return f"EndRun {action.state} {action.reason}"
        case DeleteRun():
            return f"DeleteRun {action.reason}"
