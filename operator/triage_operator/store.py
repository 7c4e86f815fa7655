"""What the operator reads from and writes to the database."""

import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy import TextClause
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.pool import AsyncAdaptedQueuePool

from triage_contract.database.deciding import carry_out
from triage_contract.database.engine import open_engine, translated
from triage_contract.database.fence import NewAttempt, OpenedAttempt, close_fence, open_attempt
from triage_contract.database.reading import judge, read_attempts, read_fence, read_run
from triage_contract.database.rows import AttemptRow, RunRow, SessionKey, session_params
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import LIFE_LOCK_CLASS, Channel
from triage_contract.states import InDoubt, RunState
from triage_contract.tools import undeclared_tools
from triage_operator import rollouts, statements
from triage_operator.memory import NEAR_LIMIT
from triage_operator.metrics.declared import ATTEMPTS_BOUNDS, RECOVERY_BOUNDS, START_BOUNDS
from triage_operator.sanitising import storable
from triage_operator.snapshot import CallCounts, JournaledCall, Repair
from triage_operator.stored import ActiveRun, AgentFacts, End, Look, Records, RunKey
from triage_operator.timing import Answered, time_statements

_logger = logging.getLogger(__name__)

STATEMENT_SECONDS: Final = 20.0
"""How long the database may take for one statement: above the longest wait for a lock, which is the fence's."""

HINDRANCE_SECONDS: Final = 3.0
"""How long the operator waits for a lock of a tenant's. An attempt's transactions are short, so this only has to
be longer than a disk takes to answer."""


class Store:
    """The operator's statements, each a short transaction of its own.

    Every method raises ``DatabaseUnreachableError`` or ``SchemaError`` where the database is the trouble.
    """

    def __init__(
        self,
        url: DatabaseUrl,
        cluster_id: str,
        *,
        pool_size: int,
        statement_seconds: float = STATEMENT_SECONDS,
    ) -> None:
        self._url = url
        self._cluster_id = cluster_id
        opened = partial(open_engine, url, statement_seconds=statement_seconds)
        self._engine = opened(application="triage-operator", pool_size=pool_size)
        # What only reads needs no transaction, and no round trips for one.
        self._reader = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        # Looks do not queue behind statements that wait for locks: they see to it that those get on.
        self._watching = opened(application="triage-operator/look", pool_size=1)
        self._watcher = self._watching.execution_options(isolation_level="AUTOCOMMIT")
        self.answered: Answered = lambda *_: None
        """Called with the operation and the seconds of each statement that was answered."""
        time_statements(self._engine, None, self._answered)
        time_statements(self._watching, "look", self._answered)

    def busy_connections(self) -> int:
        """Count the connections that a statement, or a transaction, has now."""
        return sum(pool.checkedout() for pool in self._pools())

    def idle_connections(self) -> int:
        """Count the connections that are open and wait."""
        return sum(pool.checkedin() for pool in self._pools())

    def _pools(self) -> Iterator[AsyncAdaptedQueuePool]:
        for engine in (self._engine, self._watching):
            assert isinstance(engine.pool, AsyncAdaptedQueuePool)
            yield engine.pool

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()
        await self._watching.dispose()

    @property
    def url(self) -> DatabaseUrl:
        """Where the database is."""
        return self._url

    async def attempts(self, run_id: UUID) -> tuple[AttemptRow, ...]:
        """Read a run's attempts, the oldest first."""
        async with self._reading() as connection:
            return await read_attempts(connection, run_id)

    async def read(
        self, run: RunRow, *, in_doubt: InDoubt = InDoubt.PARK, decided: Collection[str] = ()
    ) -> Records:
        """Read all about a run in one connection.

        Args:
            run: its row as it would be recorded.
            in_doubt: what its agent wants done about undeclared calls in doubt.
            decided: keys of calls about which a person decided.
        """
        async with self._reading() as connection:
            row = await read_run(connection, run.id)
            # The fence first: what is read after a null token, at the same epoch, stands still.
            fence = await read_fence(connection, run.session)
            attempts = await read_attempts(connection, run.id)
            # While an attempt is open nobody asks, and nothing keeps the answer true.
            is_open = bool(attempts) and attempts[-1].ended_at is None
            judgement = None if row is None or is_open else await judge(connection, row, in_doubt)
            params = {
                **session_params(run.session),
                "invocation_id": run.invocation_id,
                "cluster_id": self._cluster_id,
                "namespace": run.namespace,
                "agent": run.agent,
            }
            summary = (await connection.execute(statements.SUMMARY, params)).one()
            journal: tuple[JournaledCall, ...] = ()
            if judgement is not None:
                calls = (
                    await connection.execute(statements.JOURNAL, {**params, "decided": list(decided)})
                ).mappings()
                journal = tuple(JournaledCall(**call) for call in calls)
            repairs = (await connection.execute(statements.REPAIRS, {"id": run.id})).mappings()
        return Records(
            now=summary.now,
            row=row,
            attempts=attempts,
            fence=fence,
            judgement=judgement,
            journal=journal,
            repairs=tuple(Repair(**repair) for repair in repairs),
            calls=CallCounts(
                begun=summary.begun,
                done=summary.done,
                suppressed_by_journal=summary.suppressed_by_journal,
                suppressed_by_tracker=summary.suppressed_by_tracker,
            ),
            issue=summary.issue,
            running=summary.running,
        )

    async def open_attempt(self, run: RunRow, *, observed_epoch: int, attempt: NewAttempt) -> OpenedAttempt:
        """Record the next attempt of a run with a new token.

        Raises:
            EpochMovedError: the fence is not where it was observed: observe again.
            SessionBusyError: another run of the session is active.
        """
        with translated(self._url):
            return await open_attempt(self._engine, run, observed_epoch=observed_epoch, attempt=attempt)

    async def close_fence(self, session: SessionKey, epoch: int) -> None:
        """Make sure that the attempt of that epoch neither writes nor begins anything any more."""
        with translated(self._url):
            await close_fence(self._engine, session, epoch)

    async def record_pod(self, serial: int, *, pod_uid: str) -> None:
        """Record that an attempt's pod was made or adopted."""
        await self._execute(statements.RECORD_POD, serial=serial, pod_uid=pod_uid)

    async def record_node(self, serial: int, *, node: str, scheduled_at: datetime | None) -> None:
        """Record the node that an attempt's pod is on, and since when; None: since now."""
        await self._execute(statements.RECORD_NODE, serial=serial, node=node, scheduled_at=scheduled_at)

    async def record_start(self, serial: int, *, started_at: datetime) -> None:
        """Record when an attempt's container began to run."""
        await self._execute(statements.RECORD_START, serial=serial, started_at=started_at)

    async def record_raise(self, serial: int, *, memory_limit_bytes: int) -> None:
        """Record the higher memory limit that a running attempt was given."""
        await self._execute(statements.RECORD_RAISE, serial=serial, memory_limit_bytes=memory_limit_bytes)

    async def rename_pod(self, serial: int, *, pod: str) -> None:
        """Record another name for a pod that could not be made."""
        await self._execute(statements.RENAME_POD, serial=serial, pod=pod)

    async def end_attempt(self, end: End) -> None:
        """Record the end of an open attempt, whose fence is closed. One that has ended stays as it is."""
        with translated(self._url):
            async with self._engine.begin() as connection:
                await connection.execute(
                    statements.END_ATTEMPT, {**asdict(end), "bounds": list(START_BOUNDS)}
                )
                recovered = await connection.execute(
                    statements.COUNT_RECOVERY,
                    {"serial": end.serial, "cluster_id": self._cluster_id, "bounds": list(RECOVERY_BOUNDS)},
                )
        _tell(recovered.mappings())

    async def fill_cause(self, end: End) -> None:
        """Record the cause of an attempt that ended without one."""
        await self._execute(statements.FILL_CAUSE, **asdict(end))

    async def confirm_death(self, serial: int) -> None:
        """Record that the process of an attempt is known to be dead."""
        await self._execute(statements.CONFIRM_DEATH, serial=serial)

    async def carry_out(
        self,
        run: RunRow,
        *,
        fence: int,
        call: str,
        epoch: int,
        result: Mapping[str, Any] | None,
    ) -> None:
        """Settle a call in doubt with a result, or let it run again (None).

        Nothing happens unless the session's fence is closed at ``fence`` and the call is still as its attempt left it.
        """
        kept = None if result is None else storable(result)
        with translated(self._url):
            async with self._engine.begin() as connection:
                await carry_out(connection, run.session, fence=fence, call=call, epoch=epoch, result=kept)

    async def request_handoff(self, serial: int, *, reason: str) -> None:
        """Ask an attempt to release its fence at its next boundary."""
        await self._execute(statements.REQUEST_HANDOFF, serial=serial, reason=reason, channel=Channel.HANDOFF)

    async def between(self, run: RunRow) -> frozenset[str]:
        """Read the names of the agent's other runs that are between two attempts for a rollout."""
        async with self._reading() as connection:
            return await rollouts.between(connection, run)

    async def request_rollout(
        self, run: RunRow, serial: int, *, places: int, resting: Collection[str]
    ) -> bool:
        """Ask an attempt to hand off for a rollout if there is a place for it; say whether that was done."""
        with translated(self._url):
            async with self._engine.begin() as connection:
                return await rollouts.request(connection, run, serial, places=places, resting=resting)

    async def end_run(self, run: RunRow, *, state: RunState, reason: str, recorded: str) -> None:
        """Record the end of a run, of one that was never recorded as well. One that has ended stays as it is.

        ``reason`` is the word that is counted, ``recorded`` what the row keeps.
        """
        await self._execute(
            statements.END_RUN,
            **session_params(run.session),
            id=run.id,
            cluster_id=run.cluster_id,
            namespace=run.namespace,
            name=run.name,
            agent=run.agent,
            invocation_id=run.invocation_id,
            state=state,
            reason=reason,
            recorded=recorded,
            bounds=list(ATTEMPTS_BOUNDS),
        )

    async def active_runs(self, key: RunKey | None = None) -> tuple[ActiveRun, ...]:
        """Read the runs of this cluster that are not over, or those of one name: more than one where a run was
        deleted and made again."""
        namespace, name = key or (None, None)
        async with self._reading() as connection:
            params = {"cluster_id": self._cluster_id, "namespace": namespace, "name": name}
            rows = await connection.execute(statements.ACTIVE_RUNS, params)
            return tuple(
                ActiveRun(
                    row=RunRow.from_mapping(row),
                    epoch=row["epoch"],
                    open_serial=row["open_serial"],
                    node=row["node"],
                )
                for row in rows.mappings()
            )

    async def agent_facts(self, namespace: str, agent: str) -> AgentFacts:
        """Read what an agent's status says."""
        params = {"cluster_id": self._cluster_id, "namespace": namespace, "agent": agent}
        async with self._reading() as connection:
            row = (await connection.execute(statements.AGENT_FACTS, params)).one()
        undeclared = frozenset((*(row.undeclared or ()), *undeclared_tools(row.root)))
        is_told = bool(row.calls) or "tools" in (row.root or {})
        return AgentFacts(
            running=row.running,
            undeclared=undeclared if is_told else None,
            fingerprint=(row.root or {}).get("fingerprint"),
        )

    async def look(self, *, lapse_seconds: float, patience_seconds: float = HINDRANCE_SECONDS) -> Look:
        """Look at all claimed attempts; ``lapse_seconds`` without a heartbeat is silence.

        A tenant's connection that has held up the operator for ``patience_seconds`` is ended.
        """
        params = {
            "cluster_id": self._cluster_id,
            "lock_class": LIFE_LOCK_CLASS,
            "lapse_seconds": lapse_seconds,
            "near_limit": NEAR_LIMIT,
        }
        with translated(self._url):
            async with self._watcher.connect() as connection:
                await connection.execute(statements.END_HINDRANCES, {"patience_seconds": patience_seconds})
                row = (await connection.execute(statements.LOOK, params)).one()
        names = ("held", "free", "silent", "released", "resumed")
        serials = {name: frozenset(row._mapping[name] or ()) for name in names}
        cramped = frozenset((serial, limit) for serial, limit in row.cramped or ())
        return Look(now=row.now, cramped=cramped, **serials)

    async def runs_of(self, serials: Collection[int]) -> frozenset[RunKey]:
        """Say which runs some attempts belong to."""
        async with self._reading() as connection:
            rows = await connection.execute(statements.RUNS_OF_ATTEMPTS, {"serials": list(serials)})
            return frozenset((row.namespace, row.name) for row in rows)

    async def run_key(self, run_id: UUID) -> RunKey | None:
        """Say where a run of this cluster is; None: no run of this cluster has the id."""
        async with self._reading() as connection:
            row = (
                await connection.execute(statements.RUN_BY_ID, {"id": run_id, "cluster_id": self._cluster_id})
            ).one_or_none()
        return None if row is None else (row.namespace, row.name)

    async def count_recoveries(self) -> None:
        """Count the recoveries of open attempts that have written something."""
        params = {"cluster_id": self._cluster_id, "bounds": list(RECOVERY_BOUNDS)}
        with translated(self._url):
            async with self._engine.begin() as connection:
                recovered = await connection.execute(statements.COUNT_OPEN_RECOVERIES, params)
        _tell(recovered.mappings())

    async def unattended(self, *, lapse_seconds: float) -> tuple[tuple[RunKey, float], ...]:
        """Read which runs have no attempt that lives, and for how many seconds; some wait, which rows do not tell."""
        params = {"cluster_id": self._cluster_id, "lapse_seconds": lapse_seconds}
        async with self._reading() as connection:
            rows = await connection.execute(statements.UNATTENDED, params)
            return tuple(((row.namespace, row.name), row.seconds) for row in rows)

    async def duplicate_effects(self) -> tuple[tuple[str, Mapping[str, object], float], ...]:
        """Read how many issues of the last day were filed more than once by their run: a sample for each agent."""
        async with self._reading() as connection:
            rows = await connection.execute(statements.DUPLICATE_EFFECTS, {"cluster_id": self._cluster_id})
            return tuple(("duplicate_effects", row.labels, row.duplicates) for row in rows)

    async def totals(self) -> tuple[tuple[str, Mapping[str, str], float], ...]:
        """Read all counters: name, labels, value."""
        async with self._reading() as connection:
            rows = await connection.execute(statements.TOTALS)
            return tuple((row.name, row.labels, row.value) for row in rows)

    def _answered(self, operation: str, seconds: float) -> None:
        self.answered(operation, seconds)

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[AsyncConnection]:
        with translated(self._url):
            async with self._reader.connect() as connection:
                yield connection

    async def _execute(self, statement: TextClause, **params: Any) -> None:
        with translated(self._url):
            async with self._engine.begin() as connection:
                await connection.execute(statement, params)


def _tell(recovered: Iterable[Mapping[Any, Any]]) -> None:
    """Log each recovery that was counted: the metrics name no runs."""
    for one in recovered:
        _logger.info(
            "recovered",
            extra={
                "action": "recover",
                "namespace": one["namespace"],
                "run": one["name"],
                "epoch": one["epoch"],
                "cause": one["cause"],
                "seconds": round(one["seconds"], 3),
                "replies_replayed": one["replies"],
                "tokens_saved": int(one["tokens"]),
                "seconds_saved": round(float(one["seconds_saved"]), 3),
            },
        )
