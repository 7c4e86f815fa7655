"""ADK's session service, storing only what can be stored, and on the attempt's engine behind the fence."""

from typing import Any

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.session import Session
from sqlalchemy.ext.asyncio import AsyncEngine
from typing_extensions import override

from triage_agent.replay.sanitising import sanitise_event
from triage_contract.database.engine import translated
from triage_contract.database.url import DatabaseUrl

_ADK_SCHEMA_VERSION = "1"
"""The version that our migrations create, as ADK's ``adk_internal_metadata`` names it."""


class StorableSessionService(DatabaseSessionService):
    """Makes each event storable before it is appended."""

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        sanitise_event(event)
        return await super().append_event(session, event)


class FencedSessionService(StorableSessionService):
    """Reads and writes through connections that show the attempt's token.

    Each method raises DatabaseUnreachableError where the database does not answer; those that write raise FencedError
    once the attempt is not the current one any more.
    """

    def __init__(self, engine: AsyncEngine, url: DatabaseUrl) -> None:
        super().__init__(db_engine=engine)
        self._url = url
        # An agent owns no table: migrations made them, and `check_schema` saw that they are there.
        self._db_schema_version = _ADK_SCHEMA_VERSION
        self._tables_created = True

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        with translated(self._url):
            return await super().create_session(
                app_name=app_name, user_id=user_id, state=state, session_id=session_id
            )

    @override
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        with translated(self._url):
            return await super().get_session(
                app_name=app_name, user_id=user_id, session_id=session_id, config=config
            )

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        with translated(self._url):
            return await super().append_event(session, event)
