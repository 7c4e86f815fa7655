"""Moving the fence: who may write to a session.

A fence goes from one attempt to the next in two steps. ``close_fence`` nulls the token: from then on nobody writes, and
what the events and the journal say stands still. ``open_attempt`` sets the next epoch and a new token, by
compare-and-set from the epoch that the caller observed, in the transaction that writes the attempt.
"""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from triage_contract.database.rows import RunRow, SessionKey, session_params
from triage_contract.exceptions import EpochMovedError, SessionBusyError

PATIENCE_SECONDS: Final = 0.5
"""How long a fence waits for a transaction in its way before it ends that transaction's backend."""

_LOCK_TIMEOUT: Final = text("SET LOCAL lock_timeout = '10s'")
_END_BLOCKERS: Final = text("SELECT pg_terminate_backend(pid) FROM unnest(pg_blocking_pids(:waiting)) AS pid")
_NULL_TOKEN: Final = text(
    "UPDATE triage.fences SET token = NULL"
    " WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id AND epoch = :epoch"
    " AND token IS NOT NULL"
)
# A frozen attempt may also sit in an append, on the lock of its session's row, where it would block its successor.
_END_ATTEMPT_BACKENDS: Final = text(
    "SELECT pg_terminate_backend(s.pid) FROM pg_stat_activity s, triage.attempts a, triage.runs r"
    " WHERE r.app_name = :app_name AND r.user_id = :user_id AND r.session_id = :session_id AND a.run_id = r.id"
    " AND a.epoch <= :epoch AND s.application_name = 'triage-agent/' || a.serial AND s.xact_start IS NOT NULL"
    " AND s.pid <> pg_backend_pid()"
)
_INSERT_RUN: Final = text(
    "INSERT INTO triage.runs (id, cluster_id, namespace, name, agent, app_name, user_id, session_id, invocation_id,"
    " message) VALUES (:id, :cluster_id, :namespace, :name, :agent, :app_name, :user_id, :session_id,"
    " :invocation_id, CAST(:message AS jsonb)) ON CONFLICT (id) DO NOTHING"
)
_FIRST_EPOCH: Final = text(
    "INSERT INTO triage.fences (app_name, user_id, session_id, epoch, token)"
    " VALUES (:app_name, :user_id, :session_id, 1, :token) ON CONFLICT DO NOTHING RETURNING epoch"
)
_NEXT_EPOCH: Final = text(
    "UPDATE triage.fences SET epoch = epoch + 1, token = :token"
    " WHERE app_name = :app_name AND user_id = :user_id AND session_id = :session_id AND epoch = :observed"
    " AND token IS NULL RETURNING epoch"
)
_INSERT_ATTEMPT: Final = text(
    "INSERT INTO triage.attempts (run_id, epoch, pod, image, memory_limit_bytes)"
    " VALUES (:run_id, :epoch, :pod, :image, :memory_limit_bytes) RETURNING serial"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAttempt:
    """What the caller says of an attempt. ``pod`` is its name; None: it runs by hand. Memory None: no limit."""

    pod: str | None
    image: str | None
    memory_limit_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAttempt:
    """An attempt that may write from now on. ``token`` is a secret."""

    serial: int
    epoch: int
    token: str

    def __repr__(self) -> str:
        return f"OpenedAttempt(serial={self.serial}, epoch={self.epoch})"


async def open_attempt(
    engine: AsyncEngine, run: RunRow, *, observed_epoch: int, attempt: NewAttempt
) -> OpenedAttempt:
    """Record the run if it is new, move its session's fence one epoch on, and record the attempt: all or nothing.

    ``observed_epoch`` is the epoch that the caller saw with a null token; 0: the session had no fence.

    Raises:
        EpochMovedError: the fence is elsewhere, or still open.
        SessionBusyError: another run of the session is active.
    """
    token = secrets.token_urlsafe(24)
    params = {**session_params(run.session), "token": token, "observed": observed_epoch}
    async with engine.begin() as connection:
        await connection.execute(_LOCK_TIMEOUT)
        await _insert_run(connection, run)
        statement = _FIRST_EPOCH if observed_epoch == 0 else _NEXT_EPOCH
        epoch = (await connection.execute(statement, params)).scalar_one_or_none()
        if epoch is None:
            raise EpochMovedError(
                f"the fence of session {run.session.session_id} is not at epoch {observed_epoch}"
            )
        serial = (
            await connection.execute(
                _INSERT_ATTEMPT,
                {
                    "run_id": run.id,
                    "epoch": epoch,
                    "pod": attempt.pod,
                    "image": attempt.image,
                    "memory_limit_bytes": attempt.memory_limit_bytes,
                },
            )
        ).scalar_one()
    return OpenedAttempt(serial=serial, epoch=epoch, token=token)


async def close_fence(engine: AsyncEngine, session: SessionKey, epoch: int) -> bool:
    """Null the token of ``epoch``, so that nothing of that attempt is written or begun any more.

    A transaction that sits on the fence row for longer than ``PATIENCE_SECONDS`` is ended: a process frozen there must
    not hold recovery up. So are the attempt's other open transactions. Ending backends takes the same role or
    membership in ``pg_signal_backend``.

    Returns whether there was a token: False where the attempt gave it up itself, or the fence is elsewhere.
    """
    params = {**session_params(session), "epoch": epoch}
    async with engine.connect() as connection:
        waiting = (await connection.execute(text("SELECT pg_backend_pid()"))).scalar_one()
        await connection.rollback()
        async with connection.begin():
            await connection.execute(_LOCK_TIMEOUT)
            async with _unblocking(engine, waiting):
                closed = (await connection.execute(_NULL_TOKEN, params)).rowcount == 1
        if closed:
            async with connection.begin():
                await connection.execute(_END_ATTEMPT_BACKENDS, params)
    return closed


@asynccontextmanager
async def _unblocking(engine: AsyncEngine, waiting: int) -> AsyncIterator[None]:
    async def watch() -> None:
        while True:
            await asyncio.sleep(PATIENCE_SECONDS)
            async with engine.begin() as connection:
                await connection.execute(_END_BLOCKERS, {"waiting": waiting})

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait((watching,))
        if not watching.cancelled():
            watching.result()


async def _insert_run(connection: AsyncConnection, run: RunRow) -> None:
    try:
        await connection.execute(
            _INSERT_RUN,
            {
                **session_params(run.session),
                "id": run.id,
                "cluster_id": run.cluster_id,
                "namespace": run.namespace,
                "name": run.name,
                "agent": run.agent,
                "invocation_id": run.invocation_id,
                "message": None if run.message is None else json.dumps(run.message),
            },
        )
    except IntegrityError as error:
        raise SessionBusyError(f"another run of session {run.session.session_id} is still active") from error
