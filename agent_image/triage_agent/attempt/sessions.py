"""The session of an attempt, with one round trip for each event and none for what was read before."""

import asyncio
import gc
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from google.adk.errors._stale_session_error import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.platform.time import get_time
from google.adk.sessions._session_util import extract_json_safe_state_delta
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State
from typing_extensions import override

from triage_agent.attempt.record import AttemptRecord, NewEvent, StoredSession
from triage_agent.replay.sanitising import sanitise_event
from triage_contract.database.rows import SessionKey
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import SessionMissingError, SessionStaleError

if TYPE_CHECKING:
    from triage_agent.replay.sessions import FencedSessionService


class AttemptSessionService(BaseSessionService):
    """Reads and writes the attempt's own session by its record, and any other as ADK does.

    The tables are ADK's, and so is what they hold: either service goes on where the other one stopped.
    """

    def __init__(
        self, url: DatabaseUrl, *, application: str, token: str, record: AttemptRecord, own: SessionKey
    ) -> None:
        self._url = url
        self._application = application
        self._token = token
        self._record = record
        self._own = own
        self._one_at_a_time = asyncio.Lock()
        self._handed_over: Session | None = None
        self._opened: FencedSessionService | None = None

    async def close(self) -> None:
        """Close what was opened for other sessions."""
        if self._opened is not None:
            await self._opened.close()

    def hand_over(self, session: Session) -> None:
        """Give the events of a session, whose reader is done with it, to the next read if nobody wrote since."""
        self._handed_over = session

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        if state or not self._is_own(app_name, user_id, session_id):
            return await self._others.create_session(
                app_name=app_name, user_id=user_id, state=state, session_id=session_id
            )
        now = datetime.fromtimestamp(get_time(), UTC).replace(tzinfo=None)
        stored = await self._record.open_session(now)
        if stored.update_time != now:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.")
        return self._session(stored)

    @override
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        if config is not None or not self._is_own(app_name, user_id, session_id):
            return await self._others.get_session(
                app_name=app_name, user_id=user_id, session_id=session_id, config=config
            )
        stored = await self._record.read_session()
        if stored is None:
            return None
        session, handed_over = self._session(stored), self._handed_over
        self._handed_over = None
        if handed_over is not None and handed_over._storage_update_marker == session._storage_update_marker:
            session.events = handed_over.events
        else:
            session.events = _parsed(await self._record.events())
        return session

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        is_own = self._is_own(session.app_name, session.user_id, session.id)
        if event.partial or session._storage_update_marker is None or not is_own:
            return await self._others.append_event(session, event)
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        stored = sanitise_event(event)
        async with self._one_at_a_time:
            await self._append(session, event, stored)
            return self._commit_event_to_session(session, event)

    @override
    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        return await self._others.list_sessions(app_name=app_name, user_id=user_id)

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        await self._others.delete_session(app_name=app_name, user_id=user_id, session_id=session_id)

    @override
    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await self._others.get_user_state(app_name=app_name, user_id=user_id)

    @property
    def _others(self) -> "FencedSessionService":
        """ADK's service, for what few agents ask for: SQLAlchemy, which it brings, takes long to import."""
        if self._opened is None:
            from triage_agent.replay.sessions import FencedSessionService
            from triage_contract.database.engine import open_engine

            engine = open_engine(self._url, application=self._application, token=self._token)
            self._opened = FencedSessionService(engine, self._url)
        return self._opened

    async def _append(self, session: Session, event: Event, stored: Mapping[str, Any]) -> None:
        deltas = extract_json_safe_state_delta(event.actions.state_delta or {})
        timestamp = datetime.fromtimestamp(event.timestamp, UTC).replace(tzinfo=None)
        assert session._storage_update_marker is not None
        try:
            await self._record.append_event(
                NewEvent(
                    id=event.id,
                    invocation_id=event.invocation_id,
                    timestamp=timestamp,
                    marker=datetime.fromisoformat(session._storage_update_marker),
                    event=stored,
                    state=deltas["session"],
                    app_state=deltas["app"],
                    user_state=deltas["user"],
                )
            )
        except SessionStaleError as error:
            raise StaleSessionError(str(error)) from error
        except SessionMissingError as error:
            raise SessionNotFoundError(str(error)) from error
        _mark(session, timestamp)

    def _is_own(self, app_name: str, user_id: str, session_id: str | None) -> bool:
        own = self._own
        return (app_name, user_id, session_id) == (own.app_name, own.user_id, own.session_id)

    def _session(self, stored: StoredSession) -> Session:
        session = Session(
            app_name=self._own.app_name,
            user_id=self._own.user_id,
            id=self._own.session_id,
            state={
                **stored.state,
                **_prefixed(State.APP_PREFIX, stored.app_state),
                **_prefixed(State.USER_PREFIX, stored.user_state),
            },
        )
        _mark(session, stored.update_time)
        return session


def _parsed(events: list[str]) -> list[Event]:
    """Make events of their JSON. None of them is garbage: looking for any meanwhile takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [Event.model_validate_json(event) for event in events]
    finally:
        if was_enabled:
            gc.enable()


def _prefixed(prefix: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {prefix + name: value for name, value in state.items()}


def _mark(session: Session, update_time: datetime) -> None:
    """Let ADK, and us, see whether somebody else wrote to the session since."""
    session.last_update_time = update_time.replace(tzinfo=UTC).timestamp()
    session._storage_update_marker = update_time.isoformat(timespec="microseconds")
