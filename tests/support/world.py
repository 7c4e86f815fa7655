"""A world for decisions to act in: rows, a fence, pods and agent processes, and everything that can befall them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from support.builders import SETTINGS, a_run, a_triage_agent, an_attempt
from support.clock import NOW
from support.pods import PodBuilder, a_pod
from triage_contract.database.rows import AttemptRow, FenceRow
from triage_contract.quantities import format_memory
from triage_contract.states import Outcome, RunState, Verdict
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
from triage_operator.memory import raised_limit
from triage_operator.snapshot import LifeSign, Resize

START = NOW


@dataclass
class Process:
    """An agent process. Alive, it works; frozen, it does nothing, and does not leave either."""

    epoch: int
    token: str
    alive: bool = True
    frozen: bool = False


class World:
    """One run. The operator's side is ``reconcile``; all else happens to it."""

    def __init__(self, *, steps: int, resume: Mapping[str, Any]) -> None:
        self.now = START
        self.steps_left = steps
        self.agent = a_triage_agent(resume=resume)
        self.suspended = False
        self.attempts: list[AttemptRow] = []
        self.epoch = 0
        self.token: str | None = None
        self.pods: dict[int, PodBuilder] = {}
        self.last_pods: dict[int, PodBuilder] = {}
        self.processes: dict[int, Process] = {}
        self.lock_free_since: datetime | None = None
        self.resize: Resize | None = None
        self.state = RunState.ACTIVE
        self.ended_at: datetime | None = None
        self.opened_with: list[tuple[AttemptRow, ...]] = []

    # The operator.

    def decide(self) -> Action:
        scenario = replace(
            a_run().asking(suspend=self.suspended),
            now=self.now,
            agent=self.agent,
            rows=tuple(self.attempts),
            state=self.state,
            ended_at=self.ended_at,
            pods={epoch: pod.json for epoch, pod in self.pods.items()},
            last_pods={epoch: pod.json for epoch, pod in self.last_pods.items() if epoch not in self.pods},
        )
        if self.attempts:
            scenario = scenario.judged(Verdict.INTERRUPTED if self.steps_left else Verdict.FINISHED)
        life = LifeSign(lock_free_since=self.lock_free_since, reachable_since=START - timedelta(hours=1))
        fence = FenceRow(epoch=self.epoch, token=self.token) if self.epoch else None
        return decide(scenario.where(life=life, fence=fence, resize=self.resize).snapshot(), SETTINGS)

    def reconcile(self, *, dies_halfway: bool = False) -> Action:
        """Let the operator take one pass; it may die between the two steps of an action that has two."""
        action = self.decide()
        match action:
            case OpenAttempt():
                assert (self.token, self.epoch) == (None, action.observed_epoch), "compare-and-set"
                self.opened_with.append(tuple(self.attempts))
                self.epoch += 1
                self.token = f"token-{self.epoch}"
                self.attempts.append(self._row(action.memory_limit_bytes))
                if not dies_halfway:
                    self._make_pod()
            case CreatePod():
                if self.token is not None:
                    self._make_pod()
            case EndAttempt():
                self.token = None
                if not dies_halfway:
                    self._end(action)
            case FillCause():
                self._change(
                    action.epoch,
                    cause=action.cause,
                    counted=action.counted,
                    exit_code=action.exit_code,
                    confirmed_at=self.now
                    if action.confirmed
                    else self.attempts[action.epoch - 1].confirmed_at,
                )
            case ConfirmDeath():
                self._change(action.epoch, confirmed_at=self.now)
            case RequestHandoff():
                self._change(self.epoch, handoff_requested_at=self.now, handoff_reason=str(action.cause))
            case RaiseMemory():
                self._ask(action)
            case DeletePod():
                self._delete(int(action.name.rpartition("-a")[2]))
            case EndRun():
                self.state, self.ended_at = action.state, self.now
            case Wait() | DeleteRun() | CarryOutDecision():
                pass
        return action

    def _ask(self, action: RaiseMemory) -> None:
        had = self.attempts[-1].memory_limit_bytes
        assert had is not None
        assert action.limit_bytes == raised_limit(self.agent, had), "a step, and up to the cap"
        asked, given = format_memory(action.limit_bytes), format_memory(had)
        self.pods[self.epoch] = self.pods[self.epoch].with_memory(asked, given)
        self.resize = Resize(limit_bytes=action.limit_bytes, at=self.now, refusal=None, binds_next=False)

    def _row(self, memory_limit_bytes: int | None) -> AttemptRow:
        return replace(
            an_attempt(claimed_at=None, heartbeat_at=None, pod_uid=None, node=None),
            serial=100 + self.epoch,
            epoch=self.epoch,
            created_at=self.now,
            pod=f"run-a{self.epoch}",
            memory_limit_bytes=memory_limit_bytes,
        )

    def _make_pod(self) -> None:
        if self.epoch not in self.pods:
            self.pods[self.epoch] = a_pod().numbered(self.epoch)
        self._change(self.epoch, pod_uid=f"pod-uid-{self.epoch}")

    def _end(self, action: EndAttempt) -> None:
        self._change(
            action.epoch,
            ended_at=self.now,
            confirmed_at=self.now if action.confirmed else None,
            lost_at=self.now if action.outcome is Outcome.LOST else None,
            outcome=action.outcome,
            cause=action.cause,
            counted=action.counted,
            exit_code=action.exit_code,
        )
        self.lock_free_since = self.resize = None

    def _change(self, epoch: int, **fields: Any) -> None:
        self.attempts[epoch - 1] = replace(self.attempts[epoch - 1], **fields)

    # The cluster.

    def start_pods(self) -> None:
        """Start every pod that waits; its process claims if its token is the current one."""
        for epoch, pod in self.pods.items():
            if epoch not in self.processes and "deletionTimestamp" not in pod.json["metadata"]:
                limit = format_memory(self.attempts[epoch - 1].memory_limit_bytes or 0)
                self.pods[epoch] = pod.running(self.now).with_memory(limit, limit)
                self.processes[epoch] = Process(epoch=epoch, token=f"token-{epoch}")
                if self.token == f"token-{epoch}":
                    self._change(epoch, claimed_at=self.now, heartbeat_at=self.now)

    def report_deaths(self) -> None:
        """Let the kubelets say which processes have died; a pod whose deletion was asked for goes with it."""
        for epoch, pod in list(self.pods.items()):
            process = self.processes.get(epoch)
            leaves_at = pod.json["metadata"].get("deletionTimestamp")
            leaves = leaves_at is not None
            if process is not None and leaves and self.now >= datetime.fromisoformat(leaves_at):
                process.alive = False
            if process is not None and not process.alive and "exitCode" not in str(pod.json):
                self.pods[epoch] = pod = pod.exited(137, at=self.now)
            if leaves and (process is None or not process.alive):
                self.last_pods[epoch] = self.pods.pop(epoch)

    def exit(self, code: int, reason: str | None = None) -> None:
        """Let the newest process end by itself, and its kubelet say so."""
        if (process := self.newest_process) is not None:
            process.alive = False
            self.pods[process.epoch] = self.pods[process.epoch].exited(code, reason, at=self.now)

    def kill(self) -> None:
        """Kill the newest process; its lock is free at once, its kubelet says so later."""
        if (process := self.newest_process) is not None:
            process.alive = False
            self.lock_free_since = self.now

    def freeze(self) -> None:
        if (process := self.newest_process) is not None:
            process.frozen = True

    def drain(self) -> None:
        for epoch, pod in self.pods.items():
            if "deletionTimestamp" not in pod.json["metadata"]:
                self.pods[epoch] = pod.evicted(self.now)

    def _delete(self, epoch: int) -> None:
        self.pods[epoch] = self.pods[epoch].deleted(self.now)
        if epoch in self.processes:
            self.processes[epoch].alive = False

    def give_memory(self) -> None:
        """Let the newest pod's node give what is asked of it."""
        if self.resize is not None and self.newest_process is not None:
            memory = format_memory(self.resize.limit_bytes)
            self.pods[self.epoch] = self.pods[self.epoch].with_memory(memory, memory)
            self._change(self.epoch, memory_limit_bytes=self.resize.limit_bytes)

    def refuse_memory(self) -> None:
        """Let it say that it never will."""
        if self.resize is not None and self.newest_process is not None:
            self.pods[self.epoch] = self.pods[self.epoch].resize_pending("Infeasible", "too small")

    def vanish(self) -> None:
        """Remove the newest pod without a trace; its process may live on."""
        self.pods.pop(self.epoch, None)

    @property
    def newest_process(self) -> Process | None:
        """The process of the newest pod that stands and runs; None: there is none."""
        process = self.processes.get(self.epoch)
        return process if process is not None and process.alive and self.epoch in self.pods else None

    @property
    def running_pods(self) -> list[int]:
        """The epochs of the pods in which a process runs."""
        return [epoch for epoch in self.pods if epoch in self.processes and self.processes[epoch].alive]

    # The agents.

    def beat(self) -> None:
        for process in self._workers():
            self._change(process.epoch, heartbeat_at=self.now)

    def grow(self) -> None:
        """Let the newest process come near its memory limit."""
        limit = self.attempts[-1].memory_limit_bytes if self.newest_process is not None else None
        if limit is not None:
            self._change(self.epoch, memory_used_bytes=limit * 9 // 10)

    def work(self) -> None:
        """Let every process that lives store a step; the fence takes it from the current one only."""
        for process in self._workers():
            if self.steps_left and self.attempts[process.epoch - 1].claimed_at is not None:
                self.steps_left -= 1
                self._change(process.epoch, replies=self.attempts[process.epoch - 1].replies + 1)

    def leave(self) -> None:
        """Let processes end that have finished, were asked to hand off, or find themselves fenced."""
        for process in self.processes.values():
            if not process.alive or process.frozen:
                continue
            attempt, pod = self.attempts[process.epoch - 1], self.pods.get(process.epoch)
            if process.token != self.token:
                self._quit(process, 84)
            elif attempt.claimed_at is not None and not self.steps_left:
                self._release(process, Outcome.FINISHED, 0)
            elif attempt.handoff_requested_at or (pod and "deletionTimestamp" in pod.json["metadata"]):
                self._release(process, Outcome.HANDED_OFF, 81)

    def _release(self, process: Process, outcome: Outcome, code: int) -> None:
        self.token = None
        self._change(process.epoch, released_at=self.now, outcome=outcome)
        self._quit(process, code)

    def _quit(self, process: Process, code: int) -> None:
        process.alive = False
        if process.epoch in self.pods:
            self.pods[process.epoch] = self.pods[process.epoch].exited(code, at=self.now)

    def _workers(self) -> list[Process]:
        """Give the processes whose writes the fence lets through."""
        return [
            process
            for process in self.processes.values()
            if process.alive and not process.frozen and process.token == self.token
        ]

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
