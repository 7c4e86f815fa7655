"""ADK's session service and ours over the same tables: each documented behaviour, on both."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.session import Session
from google.genai import types

from support.databases import Database, a_run
from triage_agent.attempt.sessions import AttemptSessionService
from triage_contract.database.engine import open_engine
from triage_contract.database.rows import RunRow, SessionKey

STALE = "StaleSessionError"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """A service under test, and another over the same tables, for what is read or written beside it."""

    service: BaseSessionService
    other: DatabaseSessionService
    key: SessionKey

    async def create(self, **state: Any) -> Session:
        key = self.key
        return await self.service.create_session(
            app_name=key.app_name, user_id=key.user_id, session_id=key.session_id, state=state or None
        )

    async def read(self, config: GetSessionConfig | None = None, *, by_other: bool = False) -> Session:
        key, service = self.key, self.other if by_other else self.service
        session = await service.get_session(
            app_name=key.app_name, user_id=key.user_id, session_id=key.session_id, config=config
        )
        assert session is not None
        return session


@pytest.fixture
def run() -> RunRow:
    return a_run()


@pytest.fixture(params=["ADK", "ours"])
async def sessions(
    request: pytest.FixtureRequest, database: Database, run: RunRow
) -> AsyncIterator[Sessions]:
    opened = await database.open(run)
    engine = open_engine(database.url, application="test", token=opened.token)
    adk = DatabaseSessionService(db_engine=engine)
    record = database.record(opened)
    ours = AttemptSessionService(
        database.url, application="test", token=opened.token, record=record, own=run.session
    )
    yield Sessions(
        service=adk if request.param == "ADK" else ours,
        other=DatabaseSessionService(db_engine=engine),
        key=run.session,
    )
    await ours.close()
    await engine.dispose()


def an_event(text: str = "Hello.", *, at: float = 1000.0, **fields: Any) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return Event(**{"author": "docs", "invocation_id": "inv", "timestamp": at, "content": content, **fields})


def changing(at: float = 1000.0, **state: Any) -> Event:
    return an_event(at=at, actions=EventActions(state_delta=state))


async def test_there_is_no_session_before_it_is_created(sessions: Sessions) -> None:
    key = sessions.key
    found = await sessions.service.get_session(
        app_name=key.app_name, user_id=key.user_id, session_id=key.session_id
    )
    assert found is None


async def test_a_session_is_created_once(sessions: Sessions) -> None:
    session = await sessions.create()
    assert (session.id, session.state, session.events) == (sessions.key.session_id, {}, [])
    with pytest.raises(AlreadyExistsError):
        await sessions.create()


async def test_a_session_is_created_with_states_of_each_kind(sessions: Sessions) -> None:
    session = await sessions.create(**{"app:a": 1, "user:u": 2, "s": 3, "temp:t": 4})
    assert session.state == {"app:a": 1, "user:u": 2, "s": 3}
    assert (await sessions.read()).state == session.state


async def test_an_appended_event_is_read_as_it_was(sessions: Sessions) -> None:
    session = await sessions.create()
    event = an_event(
        branch="a.b",
        isolation_scope="scope",
        partial=None,
        turn_complete=True,
        error_code="SAFETY",
        error_message="Blocked.",
        custom_metadata={"key": [1, {"deep": None}]},
        long_running_tool_ids={"call-1"},
        usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=3),
        content=types.Content(
            role="model",
            parts=[
                types.Part(text="é\u2028", thought=True, thought_signature=b"\x00\xff"),
                types.Part(function_call=types.FunctionCall(id="call-1", name="look", args={"n": 1.5})),
                types.Part(function_response=types.FunctionResponse(id="0", name="x", response={"r": []})),
                types.Part(inline_data=types.Blob(data=b"\x89PNG", mime_type="image/png")),
            ],
        ),
        actions=EventActions(
            state_delta={"s": {"nested": [1, 2]}},
            artifact_delta={"page.md": 2},
            transfer_to_agent="filer",
            escalate=True,
            end_of_agent=True,
            agent_state={"nodes": {"a": {"status": 3}}},
        ),
    )
    appended = await sessions.service.append_event(session, event)
    assert appended is event
    assert session.events == [event]
    for by_other in (False, True):
        assert (await sessions.read(by_other=by_other)).events == [event]


async def test_events_come_in_the_order_of_time_and_id(sessions: Sessions) -> None:
    session = await sessions.create()
    for text, at, name in (("b", 2000.0, "2"), ("a", 2000.0, "1"), ("c", 2001.0, "0")):
        await sessions.service.append_event(session, an_event(text, at=at, id=name))
    fresh = await sessions.read(by_other=True)
    assert [event.id for event in fresh.events] == ["1", "2", "0"]


async def test_states_are_kept_by_their_prefix(sessions: Sessions) -> None:
    session = await sessions.create()
    await sessions.service.append_event(session, changing(**{"app:a": 1, "user:u": 2, "s": 3, "temp:t": 4}))
    assert session.state == {"app:a": 1, "user:u": 2, "s": 3, "temp:t": 4}
    stored = await sessions.read(by_other=True)
    assert stored.state == {"app:a": 1, "user:u": 2, "s": 3}
    assert stored.events[0].actions.state_delta == {"app:a": 1, "user:u": 2, "s": 3}
    another = await sessions.other.create_session(
        app_name=sessions.key.app_name, user_id="another", session_id="another"
    )
    assert another.state == {"app:a": 1}


async def test_a_state_is_merged_key_by_key_and_a_none_stays(sessions: Sessions) -> None:
    session = await sessions.create()
    await sessions.service.append_event(session, changing(at=1000.0, a={"x": 1}, b=1))
    await sessions.service.append_event(session, changing(at=1001.0, a={"y": 2}, b=None))
    assert session.state == {"a": {"y": 2}, "b": None}
    assert (await sessions.read(by_other=True)).state == session.state


async def test_a_partial_event_is_not_stored(sessions: Sessions) -> None:
    session = await sessions.create()
    event = an_event(partial=True, actions=EventActions(state_delta={"s": 1}))
    assert await sessions.service.append_event(session, event) is event
    assert (session.events, session.state) == ([], {})
    assert (await sessions.read()).events == []


async def test_who_read_before_another_wrote_is_stale(sessions: Sessions) -> None:
    await sessions.create()
    mine = await sessions.read()
    others = await sessions.read(by_other=True)
    await sessions.other.append_event(others, an_event("first", at=1000.0))
    with pytest.raises(Exception, match="session") as stale:
        await sessions.service.append_event(mine, an_event("second", at=1001.0))
    assert type(stale.value).__name__ == STALE
    assert [
        event.content.parts[0].text
        for event in (await sessions.read()).events
        if event.content and event.content.parts
    ] == ["first"]


async def test_who_reads_again_may_write(sessions: Sessions) -> None:
    await sessions.create()
    others = await sessions.read(by_other=True)
    await sessions.other.append_event(others, an_event(at=1000.0))
    mine = await sessions.read()
    await sessions.service.append_event(mine, an_event(at=1001.0))
    assert len((await sessions.read(by_other=True)).events) == 2


async def test_a_session_without_a_marker_is_compared_by_its_last_event(sessions: Sessions) -> None:
    session = await sessions.create()
    await sessions.service.append_event(session, an_event(at=1000.0))
    session._storage_update_marker = None
    await sessions.service.append_event(session, an_event(at=1001.0))
    assert len((await sessions.read()).events) == 2


async def test_of_two_that_append_at_once_one_is_stale(sessions: Sessions) -> None:
    await sessions.create()
    one, two = await sessions.read(), await sessions.read()
    outcomes = await asyncio.gather(
        sessions.service.append_event(one, an_event(at=1000.0)),
        sessions.service.append_event(two, an_event(at=1001.0)),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Event", STALE]


async def test_an_append_to_a_session_that_is_gone_is_refused(sessions: Sessions) -> None:
    session, key = await sessions.create(), sessions.key
    await sessions.service.delete_session(
        app_name=key.app_name, user_id=key.user_id, session_id=key.session_id
    )
    with pytest.raises((SessionNotFoundError, ValueError), match=r"(?i)session"):
        await sessions.service.append_event(session, an_event())


async def test_a_read_session_is_the_readers_own(sessions: Sessions) -> None:
    session = await sessions.create(s={"list": [1]})
    await sessions.service.append_event(session, an_event())
    first = await sessions.read()
    first.state["s"]["list"].append(2)
    first.events.clear()
    second = await sessions.read()
    assert (second.state, len(second.events)) == ({"s": {"list": [1]}}, 1)


@pytest.mark.parametrize(
    ("config", "texts"),
    [
        (GetSessionConfig(num_recent_events=2), ["b", "c"]),
        (GetSessionConfig(num_recent_events=0), []),
        (GetSessionConfig(after_timestamp=1001.0), ["b", "c"]),
        (GetSessionConfig(after_timestamp=1001.0, num_recent_events=1), ["c"]),
    ],
    ids=["recent", "none", "after", "both"],
)
async def test_part_of_a_session_can_be_read(
    sessions: Sessions, config: GetSessionConfig, texts: list[str]
) -> None:
    session = await sessions.create()
    for at, text in enumerate("abc"):
        await sessions.service.append_event(session, an_event(text, at=1000.0 + at))
    events = (await sessions.read(config)).events
    assert [part.text for event in events if event.content for part in event.content.parts or []] == texts


async def test_a_compaction_is_an_event_like_others(sessions: Sessions) -> None:
    session = await sessions.create()
    compaction = EventCompaction(
        start_timestamp=1.0,
        end_timestamp=2.0,
        compacted_content=types.Content(role="model", parts=[types.Part(text="In short.")]),
    )
    event = an_event(actions=EventActions(compaction=compaction))
    await sessions.service.append_event(session, event)
    assert (await sessions.read(by_other=True)).events == [event]


async def test_sessions_are_listed_without_events(sessions: Sessions) -> None:
    session, key = await sessions.create(s=1), sessions.key
    await sessions.service.append_event(session, an_event())
    listed = await sessions.service.list_sessions(app_name=key.app_name, user_id=key.user_id)
    assert [(it.id, it.events) for it in listed.sessions] == [(key.session_id, [])]


async def test_the_update_time_is_that_of_the_last_event(sessions: Sessions) -> None:
    session = await sessions.create()
    await sessions.service.append_event(session, an_event(at=1234.567891))
    assert session.last_update_time == pytest.approx(1234.567891, abs=1e-6)
    assert (await sessions.read(by_other=True)).last_update_time == session.last_update_time


@pytest.mark.parametrize(
    "spoil",
    [lambda event: event, lambda event: event.model_copy(update={"custom_metadata": {"nul": "a\0b"}})],
    ids=["as it is", "what Postgres refuses"],
)
async def test_ours_goes_on_where_adk_stopped_and_back(
    sessions: Sessions, spoil: Callable[[Event], Event]
) -> None:
    await sessions.create()
    for at, by_other in enumerate((True, False, True, False)):
        session = await sessions.read(by_other=by_other)
        service = sessions.other if by_other else sessions.service
        event = an_event(f"event {at}", at=1000.0 + at)
        if isinstance(service, AttemptSessionService):
            event = spoil(event)
        await service.append_event(session, event)
    for by_other in (True, False):
        events = (await sessions.read(by_other=by_other)).events
        assert [event.timestamp for event in events] == [1000.0, 1001.0, 1002.0, 1003.0]
