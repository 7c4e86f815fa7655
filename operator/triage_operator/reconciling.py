"""Reconciling: one pass over one run. Gather, decide, apply one action, write the status once, then the Event."""

import logging
import random
from datetime import UTC, datetime
from typing import Final

from triage_contract.api import RunCondition, RunStatus
from triage_contract.exceptions import (
    ApiError,
    DatabaseUnreachableError,
    EpochMovedError,
    SchemaError,
    SessionBusyError,
    TriageError,
)
from triage_operator.actions import Action, DeleteRun, EndAttempt, EndRun, OpenAttempt, Wait
from triage_operator.agents import AgentKeeper
from triage_operator.announcing import Announcer, is_announced
from triage_operator.applying import Applier
from triage_operator.deciding import decide
from triage_operator.deciding.carrying_out import ignored
from triage_operator.exceptions import (
    KubeConflictError,
    KubeUnavailableError,
    PlaceTakenError,
    TornSnapshotError,
)
from triage_operator.gathering import Found, Gatherer
from triage_operator.holding_up import held_up
from triage_operator.kube import Kube, Object
from triage_operator.metrics.exporting import Metrics
from triage_operator.places import AgentKey, Places
from triage_operator.queueing import WorkQueue
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings, ReconcilingSettings
from triage_operator.sightings import Sightings
from triage_operator.snapshot import Snapshot
from triage_operator.status import build_status
from triage_operator.steps import Checkpoint, Step, go_on
from triage_operator.store import Store
from triage_operator.stored import RunKey

_OUT_OF_DATE: Final = (
    EpochMovedError,
    SessionBusyError,
    KubeConflictError,
    PlaceTakenError,
    TornSnapshotError,
)
"""Somebody else was faster: what was decided rests on what is no longer so."""

MIN_WAIT_SECONDS: Final = 0.05
"""Shortest wait until a time that a decision names, so that a clock that is a little off makes no busy loop."""

_logger = logging.getLogger(__name__)


class Reconciler:
    """Brings runs forward, each by one action at a time."""

    def __init__(
        self,
        kube: Kube,
        store: Store,
        *,
        gatherer: Gatherer,
        applier: Applier,
        announcer: Announcer,
        agents: AgentKeeper,
        places: Places,
        sightings: Sightings,
        queue: WorkQueue[RunKey],
        metrics: Metrics,
        deciding: DecidingSettings,
        settings: ReconcilingSettings,
        checkpoint: Checkpoint = go_on,
    ) -> None:
        self._kube = kube
        self._store = store
        self._gatherer = gatherer
        self._applier = applier
        self._announcer = announcer
        self._agents = agents
        self._places = places
        self._sightings = sightings
        self._queue = queue
        self._metrics = metrics
        self._deciding = deciding
        self._settings = settings
        self._checkpoint = checkpoint
        self._failures: dict[RunKey, int] = {}
        self._last: dict[RunKey, Action] = {}
        self._alone: dict[RunKey, str] = {}
        """UIDs of runs that no other row under their name is active beside."""

    async def reconcile(self, key: RunKey) -> None:
        """Make one pass over a run, and see to the next one. Raises nothing but cancellation."""
        with self._metrics.reconciling() as done:
            try:
                done(await self._pass(key))
            except _OUT_OF_DATE as error:
                done("observe_again")
                self._try_again(key, error, level=logging.DEBUG)
            except (DatabaseUnreachableError, SchemaError) as error:
                done("no_database")
                self._try_again(key, error)
            except KubeUnavailableError as error:
                done("no_api_server")
                self._try_again(key, error, at_least=error.retry_after_seconds or 0.0)
            except TriageError as error:
                done("refused")
                self._try_again(key, error)
            # The boundary of the queue: whatever is wrong with one run must not end the others.
            except Exception as error:
                done("error")
                _logger.exception("a reconcile failed", extra=_about(key, "reconcile"))
                self._try_again(key, error)
            else:
                self._failures.pop(key, None)

    def try_failed_again(self) -> None:
        """Have every run tried again at once whose last pass failed: what was in the way may be gone."""
        for key in self._failures:
            self._queue.wake(key)

    async def _pass(self, key: RunKey) -> str:
        """Make one pass; give the name of what was done."""
        raw = await self._kube.get_run(*key)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            await self._end_others(key, None)
            self._sightings.forget(key)
            self._leave_line(key)
            self._last.pop(key, None)
            self._alone.pop(key, None)
            return "gone"
        uid = raw["metadata"]["uid"]
        self._sightings.run(raw)
        try:
            if self._alone.get(key) != uid:
                await self._end_others(key, uid)
                self._alone[key] = uid
            found = await self._gatherer.find(raw)
            if found.is_limited:
                async with self._places.turn(found.agent_key):
                    return await self._decide_and_apply(found)
            return await self._decide_and_apply(found)
        except ApiError as error:
            self._leave_line(key)
            await self._hold_up(raw, Reason.BAD_CONFIGURATION, str(error))
            return "unreadable"
        except (DatabaseUnreachableError, SchemaError) as error:
            await self._hold_up(raw, Reason.DATABASE_UNREACHABLE, str(error))
            raise

    async def _decide_and_apply(self, found: Found) -> str:
        snapshot = await self._gatherer.gather(found)
        if await self._applier.note_pod(snapshot):
            self._queue.wake(found.key)
        action = decide(snapshot, self._deciding)
        name = _name(action)
        log = _logger.debug if isinstance(action, Wait) else _logger.info
        log("decided", extra=_about(found.key, name) | _facts(snapshot, action))
        await self._applier.apply(snapshot, action)
        self._note_places(found, action)
        if not isinstance(action, DeleteRun):
            await self._write_status(found, snapshot, action)
            self._tell_once(found, snapshot)
        # Only after the status, which tells whether the run waits for a person.
        self._note_turn(found, action)
        if isinstance(action, Wait):
            self._gatherer.settle(snapshot)
            if action.phase.terminal:
                self._sightings.forget_words(found.key)
                self._gatherer.forget(snapshot.attempts)
            if action.until is not None:
                delay = (action.until - snapshot.now).total_seconds()
                self._queue.wake_after(found.key, max(delay, MIN_WAIT_SECONDS))
        elif action == self._last.get(found.key):
            # What is decided again unchanged had no effect so far: do not repeat it without end.
            self._queue.wake_after(found.key, self._settings.retry_seconds)
        else:
            self._queue.wake(found.key)
        self._last[found.key] = action
        return name

    async def _write_status(self, found: Found, snapshot: Snapshot, action: Action) -> None:
        before, status = found.run.status, build_status(snapshot, action)
        if status is not None and status != before:
            self._sightings.run(await self._kube.write_run_status({**found.raw, "status": status.to_json()}))
            await self._checkpoint(Step.STATUS_WRITTEN)
        if is_announced(action, is_news=status is not None and _reason(status) != _reason(before)):
            self._announcer.announce(
                found.run, action=_name(action), reason=action.reason, message=action.message
            )

    def _tell_once(self, found: Found, snapshot: Snapshot) -> None:
        for repair in snapshot.repairs:
            self._announcer.announce(
                found.run,
                action="Repair",
                reason=Reason.REPAIRED,
                message=repair.message,
                once=f"repair {repair.id}",
            )
        for decision, why in ignored(snapshot):
            self._announcer.announce(
                found.run,
                action="IgnoreDecision",
                reason=Reason.DECISION_IGNORED,
                message=f"The decision {decision.action} does nothing: {why}",
                once=f"decision {decision.call} {decision.attempt} {decision.action}",
            )

    async def _hold_up(self, raw: Object, reason: Reason, message: str) -> None:
        """Show in the status what is in the way, where nothing else about the run can be said."""
        status = held_up(raw, reason=reason, message=message, now=datetime.now(UTC))
        if status != (raw.get("status") or {}):
            self._sightings.run(await self._kube.write_run_status({**raw, "status": status}))

    async def _end_others(self, key: RunKey, uid: str | None) -> None:
        """End the rows of runs that had this name and are not ``uid``, the one that has it now; None: nobody has."""
        for gone in await self._store.active_runs(key):
            if str(gone.row.id) != uid:
                await self._applier.end_gone(gone)
                # Not by what is known of places: a pass that failed meanwhile has forgotten this run's.
                self._wake_lines(AgentKey(key[0], gone.row.agent))

    def _note_places(self, found: Found, action: Action) -> None:
        agent = found.agent_key
        if isinstance(action, EndRun) or (isinstance(action, Wait) and action.phase.terminal):
            left = self._places.forget(found.key) is not None
        else:
            created_at = found.run.metadata.creation_timestamp
            queued = action.reason is Reason.QUEUED
            left = self._places.note(agent, found.key, created_at, queued=queued)
        if isinstance(action, OpenAttempt | EndAttempt | EndRun):
            self._agents.note(agent)
        if left or isinstance(action, EndAttempt):
            self._wake_next(agent)

    def _note_turn(self, found: Found, action: Action) -> None:
        """See to it that a place of a rollout which came free is taken."""
        outdated = action.reason is Reason.OUTDATED
        if self._places.note_outdated(found.agent_key, found.key, outdated=outdated):
            # A place that came free before it was in the line was offered to others only.
            self._queue.wake(found.key)
        elif not outdated:
            self._wake(self._places.next_outdated(found.agent_key))

    def _leave_line(self, key: RunKey) -> None:
        agent = self._places.forget(key)
        if agent is not None:
            self._wake_lines(agent)

    def _wake_lines(self, agent: AgentKey) -> None:
        self._wake_next(agent)
        self._wake(self._places.next_outdated(agent))

    def _wake_next(self, agent: AgentKey) -> None:
        self._wake(self._places.next_in_line(agent))

    def _wake(self, key: RunKey | None) -> None:
        if key is not None:
            self._queue.wake(key)

    def _try_again(
        self, key: RunKey, error: Exception, *, level: int = logging.WARNING, at_least: float = 0.0
    ) -> None:
        # Nobody waits for one that cannot be decided about.
        self._leave_line(key)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        backoff = self._settings.retry_seconds * 2 ** min(failures - 1, 16)
        delay = max(at_least, min(backoff, self._settings.retry_max_seconds) * random.uniform(0.5, 1.0))  # noqa: S311
        _logger.log(
            level, "trying again", extra=_about(key, "retry") | {"reason": str(error), "delay_seconds": delay}
        )
        self._queue.wake_after(key, delay)


def _name(action: Action) -> str:
    """Give an action's name as it is written in logs, Events and metrics: ``OpenAttempt``."""
    return type(action).__name__


def _about(key: RunKey, action: str) -> dict[str, object]:
    return {"namespace": key[0], "run": key[1], "action": action}


def _facts(snapshot: Snapshot, action: Action) -> dict[str, object]:
    newest = snapshot.newest
    return {
        "epoch": None if newest is None else newest.epoch,
        "cause": getattr(action, "cause", None),
        "reason": action.reason,
        "detail": action.message,
    }


def _reason(status: RunStatus) -> str | None:
    """Give the reason of the condition that says how a run is."""
    return next((one.reason for one in status.conditions if one.type == RunCondition.PROGRESSING), None)
