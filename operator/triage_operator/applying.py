"""Applying: the effects of one action.

Each effect is safe to repeat, and each order of steps is safe to break off anywhere: what was done shows in the next
snapshot, and the next decision goes on from there.
"""

import logging
from typing import Final, assert_never

from triage_contract.database.fence import NewAttempt
from triage_contract.states import Cause, DecisionAction, Outcome, RunState
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
from triage_operator.diagnosing.facts import read_facts
from triage_operator.exceptions import KubeConflictError, KubeRefusedError, PlaceTakenError
from triage_operator.identity import run_row
from triage_operator.kube import Kube
from triage_operator.manifests import build_pod
from triage_operator.naming import next_name, pod_name
from triage_operator.reasons import Reason
from triage_operator.resizing import build_resize, raised_beyond
from triage_operator.sightings import belongs, epoch_of
from triage_operator.snapshot import Refusal, Resize, Snapshot
from triage_operator.steps import Checkpoint, Step, go_on
from triage_operator.store import Store
from triage_operator.stored import ActiveRun, End

_OVER_QUOTA: Final = "exceeded quota"
"""In the API server's words when a pod does not fit a ResourceQuota."""

_OVER_LIMIT_RANGE: Final = "maximum memory usage per"
"""In its words when a pod has more memory than a LimitRange lets any have."""

_logger = logging.getLogger(__name__)

_SILENT: Final = frozenset(
    {Cause.UNRESPONSIVE, Cause.STATUS_UNKNOWN, Cause.NODE_LOST, Cause.NODE_UNREACHABLE, Cause.NODE_GONE}
)
"""Losses after which a node may be dead that counts as ready for half a minute more."""


class Applier:
    """Has the effects.

    ``refusals`` are the pods that the API server refused, ``resizes`` the memory limits that it was last asked for,
    both by serial and shared with gathering.
    """

    def __init__(
        self,
        kube: Kube,
        store: Store,
        *,
        cluster_id: str,
        refusals: dict[int, Refusal],
        resizes: dict[int, Resize],
        heartbeat_seconds: float,
        checkpoint: Checkpoint = go_on,
    ) -> None:
        self._kube = kube
        self._store = store
        self._cluster_id = cluster_id
        self._heartbeat_seconds = heartbeat_seconds
        self._refusals = refusals
        self._resizes = resizes
        self._checkpoint = checkpoint

    async def apply(self, snapshot: Snapshot, action: Action) -> None:
        """Have the effects of an action that was decided on the snapshot.

        Raises:
            EpochMovedError, SessionBusyError, KubeConflictError, PlaceTakenError: the snapshot is out of date:
                observe again.
            KubeUnavailableError, DatabaseUnreachableError: the action may have been applied in part.
        """
        match action:
            case Wait():
                pass
            case OpenAttempt():
                await self._open_attempt(snapshot, action)
            case CreatePod():
                await self._create_recorded_pod(snapshot, action)
            case EndAttempt():
                await self._end_attempt(snapshot, action)
            case FillCause():
                await self._store.fill_cause(_end(action, Outcome.LOST))
            case ConfirmDeath():
                await self._store.confirm_death(action.serial)
            case CarryOutDecision():
                await self._carry_out(snapshot, action)
            case RequestHandoff():
                await self._request_handoff(snapshot, action)
            case RaiseMemory():
                await self._raise_memory(snapshot, action)
            case DeletePod():
                await self._kube.delete_pod(snapshot.run.metadata.namespace, action.name, uid=action.uid)
            case EndRun():
                await self._end_run(snapshot, action)
            case DeleteRun():
                metadata = snapshot.run.metadata
                await self._kube.delete_run(metadata.namespace, metadata.name, uid=metadata.uid)
            case _:
                assert_never(action)

    async def end_gone(self, gone: ActiveRun) -> None:
        """End the row of a run whose object is gone, so that nothing of it is written or begun any more."""
        message = "The TriageRun was deleted."
        if gone.epoch is not None:
            await self._store.close_fence(gone.row.session, gone.epoch)
            await self._checkpoint(Step.FENCE_CLOSED)
        if gone.open_serial is not None:
            end = End(
                serial=gone.open_serial,
                outcome=Outcome.CANCELLED,
                cause=None,
                counted=False,
                exit_code=None,
                confirmed=False,
                message=message,
            )
            await self._store.end_attempt(end)
            await self._checkpoint(Step.ATTEMPT_ENDED)
        await self._store.end_run(
            gone.row,
            state=RunState.CANCELLED,
            reason=Reason.DELETED,
            recorded=f"{Reason.DELETED}: {message}",
        )
        await self._checkpoint(Step.RUN_ENDED)
        _logger.info(
            "ended a deleted run",
            extra={"action": "end_run", "namespace": gone.row.namespace, "run": gone.row.name},
        )

    async def note_pod(self, snapshot: Snapshot) -> bool:
        """Record what the open attempt's pod says of itself and its row does not yet hold.

        Says whether that is news which no event follows.
        """
        attempt = snapshot.open_attempt
        pod = None if attempt is None else snapshot.pods.get(attempt.epoch)
        if attempt is None or pod is None:
            return False
        if attempt.pod_uid is None:
            await self._store.record_pod(attempt.serial, pod_uid=pod["metadata"]["uid"])
        node, facts = pod["spec"].get("nodeName"), read_facts(pod)
        if attempt.node is None and node is not None:
            await self._store.record_node(attempt.serial, node=node, scheduled_at=facts.scheduled_at)
        if attempt.started_at is None and facts.started_at is not None:
            await self._store.record_start(attempt.serial, started_at=facts.started_at)
        raised = raised_beyond(pod, attempt.memory_limit_bytes)
        if raised is None:
            return False
        await self._store.record_raise(attempt.serial, memory_limit_bytes=raised)
        return True

    async def _open_attempt(self, snapshot: Snapshot, action: OpenAttempt) -> None:
        run, agent = snapshot.run, snapshot.agent
        assert agent is not None
        name = pod_name(run.metadata.name, run.metadata.uid, action.observed_epoch + 1)
        opened = await self._store.open_attempt(
            snapshot.row or run_row(run, self._cluster_id),
            observed_epoch=action.observed_epoch,
            attempt=NewAttempt(
                pod=name, image=agent.spec.image, memory_limit_bytes=action.memory_limit_bytes
            ),
        )
        await self._checkpoint(Step.ATTEMPT_RECORDED)
        await self._create_pod(
            snapshot,
            name=name,
            serial=opened.serial,
            epoch=opened.epoch,
            token=opened.token,
            memory_limit_bytes=action.memory_limit_bytes,
        )

    async def _create_recorded_pod(self, snapshot: Snapshot, action: CreatePod) -> None:
        attempt, fence = snapshot.open_attempt, snapshot.fence
        assert attempt is not None
        assert fence is not None
        if fence.token is None:
            return  # somebody closed the fence in the meantime: observe again
        name = attempt.pod or pod_name(snapshot.run.metadata.name, snapshot.run.metadata.uid, attempt.epoch)
        if action.next_name:
            name = next_name(name)
            await self._store.rename_pod(attempt.serial, pod=name)
            await self._checkpoint(Step.POD_RENAMED)
        await self._create_pod(
            snapshot,
            name=name,
            serial=attempt.serial,
            epoch=attempt.epoch,
            token=fence.token,
            memory_limit_bytes=attempt.memory_limit_bytes,
        )

    async def _create_pod(
        self,
        snapshot: Snapshot,
        *,
        name: str,
        serial: int,
        epoch: int,
        token: str,
        memory_limit_bytes: int | None,
    ) -> None:
        agent, metadata = snapshot.agent, snapshot.run.metadata
        assert agent is not None
        pod = build_pod(
            snapshot.run,
            agent,
            name=name,
            epoch=epoch,
            token=token,
            memory_limit_bytes=memory_limit_bytes,
            heartbeat_seconds=self._heartbeat_seconds,
            avoided_node=_silent_node(snapshot, epoch),
        )
        try:
            made = await self._kube.create_pod(metadata.namespace, pod)
        except KubeConflictError:
            standing = await self._kube.get_pod(metadata.namespace, name)
            if standing is None or not (belongs(standing, metadata.uid) and epoch_of(standing) == epoch):
                # Another's pod: the next snapshot shows it, and the next decision takes another name.
                return
            made = standing
        except KubeRefusedError as refused:
            self._refusals[serial] = Refusal(
                message=str(refused), at=snapshot.now, passing=_OVER_QUOTA in str(refused)
            )
            return
        self._refusals.pop(serial, None)
        await self._checkpoint(Step.POD_CREATED)
        await self._store.record_pod(serial, pod_uid=made["metadata"]["uid"])
        await self._checkpoint(Step.POD_RECORDED)

    async def _raise_memory(self, snapshot: Snapshot, action: RaiseMemory) -> None:
        attempt = snapshot.open_attempt
        assert attempt is not None
        pod = snapshot.pods[attempt.epoch]
        refusal = None
        try:
            await self._kube.resize_pod(pod, build_resize(pod, action.limit_bytes))
        except KubeRefusedError as refused:
            refusal = str(refused)
            _logger.warning(
                "memory was not raised",
                extra={"action": "raise_memory", "run": snapshot.run.metadata.name, "reason": refusal},
            )
        binds_next = refusal is not None and (_OVER_QUOTA in refusal or _OVER_LIMIT_RANGE in refusal)
        self._resizes[action.serial] = Resize(
            limit_bytes=action.limit_bytes, at=snapshot.now, refusal=refusal, binds_next=binds_next
        )

    async def _end_attempt(self, snapshot: Snapshot, action: EndAttempt) -> None:
        assert snapshot.row is not None
        await self._store.close_fence(snapshot.row.session, action.epoch)
        await self._checkpoint(Step.FENCE_CLOSED)
        await self._store.end_attempt(_end(action, action.outcome))
        self._refusals.pop(action.serial, None)
        self._resizes.pop(action.serial, None)
        await self._checkpoint(Step.ATTEMPT_ENDED)

    async def _request_handoff(self, snapshot: Snapshot, action: RequestHandoff) -> None:
        if action.max_unavailable is None:
            await self._store.request_handoff(action.serial, reason=action.cause)
            return
        assert snapshot.row is not None
        asked = await self._store.request_rollout(
            snapshot.row,
            action.serial,
            places=action.max_unavailable,
            resting=snapshot.handovers.resting,
        )
        if not asked:
            raise PlaceTakenError("other runs of the agent are between two attempts for a rollout")

    async def _carry_out(self, snapshot: Snapshot, action: CarryOutDecision) -> None:
        assert snapshot.row is not None
        assert snapshot.fence is not None
        is_done = action.decided is DecisionAction.DONE
        await self._store.carry_out(
            snapshot.row,
            fence=snapshot.fence.epoch,
            call=action.call,
            epoch=action.epoch,
            result=action.result if is_done else None,
        )
        await self._checkpoint(Step.DECISION_CARRIED_OUT)

    async def _end_run(self, snapshot: Snapshot, action: EndRun) -> None:
        await self._store.end_run(
            snapshot.row or run_row(snapshot.run, self._cluster_id),
            state=action.state,
            reason=action.reason,
            recorded=action.recorded,
        )
        await self._checkpoint(Step.RUN_ENDED)


def _end(action: EndAttempt | FillCause, outcome: Outcome) -> End:
    return End(
        serial=action.serial,
        outcome=outcome,
        cause=action.cause,
        counted=action.counted,
        exit_code=action.exit_code,
        confirmed=action.confirmed,
        message=action.message,
    )


def _silent_node(snapshot: Snapshot, epoch: int) -> str | None:
    """Give the node of the attempt before this one, if it fell silent there."""
    before = [each for each in snapshot.attempts if each.epoch < epoch]
    return before[-1].node if before and before[-1].cause in _SILENT else None
