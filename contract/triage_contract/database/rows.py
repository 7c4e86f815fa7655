"""Rows of our tables as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from triage_contract.states import Cause, Outcome, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """An ADK session: what the fence is about."""

    app_name: str
    user_id: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run. ``message`` is a content object ``{"parts": [{"text": …}]}``; None: the session holds the input already.

    ``root`` is what the first attempt recorded of the agent tree; None: no attempt came so far.
    """

    id: UUID
    cluster_id: str
    namespace: str
    name: str
    agent: str
    session: SessionKey
    invocation_id: str
    message: Mapping[str, Any] | None
    root: Mapping[str, Any] | None
    state: RunState
    reason: str | None
    created_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def from_mapping(cls, row: Mapping[Any, Any]) -> Self:
        """Read a row of ``SELECT * FROM triage.runs``."""
        session = SessionKey(app_name=row["app_name"], user_id=row["user_id"], session_id=row["session_id"])
        names = {field.name for field in fields(cls)} - {"session", "state"}
        return cls(
            session=session, state=RunState(row["state"]), **{key: row[key] for key in row if key in names}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """An attempt; the migrations say what each column means and who writes it. Times are aware, None: not so far."""

    serial: int
    run_id: UUID
    epoch: int
    pod: str | None
    pod_uid: str | None
    node: str | None
    image: str | None
    memory_limit_bytes: int | None
    created_at: datetime
    started_at: datetime | None
    claimed_at: datetime | None
    heartbeat_at: datetime | None
    first_write_at: datetime | None
    sigterm_at: datetime | None
    handoff_requested_at: datetime | None
    handoff_reason: str | None
    released_at: datetime | None
    lost_at: datetime | None
    ended_at: datetime | None
    confirmed_at: datetime | None
    memory_used_bytes: int | None
    replies: int
    calls_done: int
    events: int
    prompt_tokens: int
    output_tokens: int
    outcome: Outcome | None
    cause: Cause | None
    counted: bool | None
    exit_code: int | None
    error: str | None
    retry_after_seconds: float | None
    recovery_counted: bool

    @classmethod
    def from_mapping(cls, row: Mapping[Any, Any]) -> Self:
        """Read a row of ``SELECT * FROM triage.attempts``."""
        values = {field.name: row[field.name] for field in fields(cls)}
        values["outcome"] = None if row["outcome"] is None else Outcome(row["outcome"])
        values["cause"] = None if row["cause"] is None else Cause(row["cause"])
        return cls(**values)

    @property
    def progressed(self) -> bool:
        """Whether it left anything new: a model reply, a finished call, or an event that repeats nothing."""
        return self.replies + self.calls_done + self.events > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceRow:
    """A session's fence. ``token`` is a secret; None: nobody may write."""

    epoch: int
    token: str | None

    def __repr__(self) -> str:
        return f"FenceRow(epoch={self.epoch}, token={'set' if self.token else None})"


def session_params(session: SessionKey) -> dict[str, str]:
    """Give the parameters of a statement that names a session."""
    return {"app_name": session.app_name, "user_id": session.user_id, "session_id": session.session_id}
