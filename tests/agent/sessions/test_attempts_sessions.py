"""The session of an attempt where its service does more than ADK's: one process that appends, and reads, at once."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.session import Session
from google.genai import types

from support.databases import Database, a_run
from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.running import open_session
from triage_agent.attempt.sessions import AttemptSessionService
from triage_contract.database.rows import RunRow, SessionKey


@pytest.fixture
def run() -> RunRow:
    return a_run()


@pytest.fixture
async def ours(database: Database, run: RunRow) -> AsyncIterator[AttemptSessionService]:
    opened = await database.open(run)
    service = AttemptSessionService(
        database.url,
        application="test",
        token=opened.token,
        record=database.record(opened),
        own=run.session,
    )
    yield service
    await service.close()


@pytest.fixture(params=["ADK", "ours"])
def service(request: pytest.FixtureRequest, ours: AttemptSessionService) -> BaseSessionService:
    return ours if request.param == "ours" else ours._others


@pytest.fixture
def events_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of events of each read that fetched any."""
    numbers: list[int] = []
    read = AttemptRecord.events

    async def counted(record: AttemptRecord) -> list[str]:
        events = await read(record)
        numbers.append(len(events))
        return events

    monkeypatch.setattr(AttemptRecord, "events", counted)
    return numbers


def an_event(text: str, *, at: float, **state: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    actions = EventActions(state_delta=state)
    return Event(author="docs", invocation_id="inv", timestamp=at, content=content, actions=actions)


async def read(service: BaseSessionService, key: SessionKey) -> Session:
    session = await service.get_session(app_name=key.app_name, user_id=key.user_id, session_id=key.session_id)
    assert session is not None
    return session


def texts(session: Session) -> list[str | None]:
    return [part.text for event in session.events if event.content for part in event.content.parts or []]


async def test_those_who_share_a_session_append_in_turn(service: BaseSessionService, run: RunRow) -> None:
    session = await open_session(service, run.session)
    await asyncio.gather(
        *(service.append_event(session, an_event(f"{at}", at=1000.0 + at)) for at in range(5))
    )
    assert texts(session) == texts(await read(service, run.session)) == ["0", "1", "2", "3", "4"]


async def test_events_are_read_in_the_order_of_their_times(service: BaseSessionService, run: RunRow) -> None:
    session = await open_session(service, run.session)
    for text, at in (("later", 1002.0), ("earlier", 1001.0)):
        await service.append_event(session, an_event(text, at=at))
    assert texts(await read(service, run.session)) == ["earlier", "later"]


async def test_who_changes_an_event_changes_no_other_reading(
    service: BaseSessionService, run: RunRow
) -> None:
    session = await open_session(service, run.session)
    await service.append_event(session, an_event("said", at=1001.0))
    for _ in range(3):
        content = (await read(service, run.session)).events[0].content
        assert content is not None
        assert content.parts is not None
        assert content.parts[0].text == "said"
        content.parts[0].text = "changed"


async def test_what_the_attempt_read_is_not_read_again_for_the_runner(
    ours: AttemptSessionService, run: RunRow, events_read: list[int]
) -> None:
    session = await open_session(ours, run.session)
    await ours.append_event(session, an_event("read", at=1001.0))
    session = await read(ours, run.session)
    await ours.append_event(session, an_event("appended", at=1002.0, **{"s": 1, "temp:t": 2}))
    ours.hand_over(session)
    runners = await read(ours, run.session)
    assert events_read == [1]
    assert texts(runners) == ["read", "appended"]
    assert runners.state == {"s": 1}
    await ours.append_event(runners, an_event("more", at=1003.0))
    assert texts(await read(ours, run.session)) == ["read", "appended", "more"]
    assert events_read == [1, 3]


async def test_what_another_wrote_since_is_read(ours: AttemptSessionService, run: RunRow) -> None:
    session = await open_session(ours, run.session)
    other = DatabaseSessionService(db_engine=ours._others.db_engine)
    await other.append_event(await read(other, run.session), an_event("another's", at=1001.0))
    ours.hand_over(session)
    assert texts(await read(ours, run.session)) == ["another's"]


async def test_a_state_that_has_no_row_gets_one(
    ours: AttemptSessionService, run: RunRow, database: Database
) -> None:
    session = await open_session(ours, run.session)
    await database.values("DELETE FROM app_states")
    await database.values("DELETE FROM user_states")
    await ours.append_event(session, an_event("said", at=1001.0, **{"app:a": 1, "user:u": 2}))
    assert (await read(ours, run.session)).state == {"app:a": 1, "user:u": 2}


async def test_columns_count_where_the_event_says_nothing_or_something_else(
    service: BaseSessionService, run: RunRow, database: Database
) -> None:
    session = await open_session(service, run.session)
    await service.append_event(session, an_event("said", at=1001.5))
    await database.values("ALTER TABLE events DISABLE TRIGGER triage_guard")
    await database.values('UPDATE events SET event_data = \'{"author": "docs", "id": "other"}\'')
    (event,) = (await read(service, run.session)).events
    assert (event.id, event.invocation_id, event.timestamp) == (session.events[0].id, "inv", 1001.5)
