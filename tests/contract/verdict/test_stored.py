"""The statements that read the events, on Postgres and SQLite, over every recorded run."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from support.golden import Golden, load, names
from triage_contract.database.engine import open_engine
from triage_contract.database.migrating import migrate
from triage_contract.database.reading import EVENTS_POSTGRES, EVENTS_SQLITE
from triage_contract.database.url import DatabaseUrl
from triage_contract.verdict import EventFacts, RunFacts, event_facts, verdict
from triage_local.postgres import PostgresServer

INSERT = text(
    "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
    " VALUES (:id, 'golden', 'triage', :session_id, :invocation_id, :timestamp, CAST(:data AS jsonb))"
)
SESSION = text(
    "INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)"
    " VALUES ('golden', 'triage', :session_id, '{}', now(), now())"
)
SQLITE_EVENTS = text(
    "CREATE TABLE events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
)
LONG = 10_000


@pytest.fixture
async def engine(postgres: PostgresServer) -> AsyncIterator[AsyncEngine]:
    url = DatabaseUrl.parse(postgres.create_database())
    await migrate(url)
    engine = open_engine(url, application="test-verdict")
    yield engine
    await engine.dispose()


def parameters(session_id: str, invocation_id: str = "inv-golden") -> dict[str, str]:
    return {
        "app_name": "golden",
        "user_id": "triage",
        "session_id": session_id,
        "invocation_id": invocation_id,
    }


def rows(golden: Golden) -> list[dict[str, Any]]:
    return [
        {
            "id": event["id"],
            "session_id": golden.name,
            "invocation_id": event["invocation_id"],
            "timestamp": datetime.fromtimestamp(event["timestamp"], UTC).replace(tzinfo=None),
            "data": json.dumps(event),
        }
        for event in golden.stored
    ]


def speechless(events: list[EventFacts]) -> list[EventFacts]:
    return [replace(event, text=None) for event in events]


async def test_projection_loses_nothing_that_the_rules_need(engine: AsyncEngine) -> None:
    for golden in map(load, names()):
        async with engine.begin() as connection:
            await connection.execute(SESSION, {"session_id": golden.name})
            await connection.execute(INSERT, rows(golden))
            stored = await connection.scalars(EVENTS_POSTGRES, parameters(golden.name))
        small = [event_facts(event) for event in stored]
        whole = golden.prefix(len(golden.stored))

        assert speechless(small) == speechless(whole), golden.name
        run = RunFacts(root=golden.root)
        assert verdict(small, run, None) == verdict(whole, run, None), golden.name


async def test_projection_keeps_neither_arguments_nor_results(engine: AsyncEngine) -> None:
    golden = load("sequential")
    async with engine.begin() as connection:
        await connection.execute(SESSION, {"session_id": golden.name})
        await connection.execute(INSERT, rows(golden))
        stored = list(await connection.scalars(EVENTS_POSTGRES, parameters(golden.name)))
    sent = json.dumps(stored)
    assert "Tokens expire" not in sent
    assert "never expire" not in sent
    assert "contradicts" not in sent
    assert "Filed issue 41." in sent


async def test_projection_reads_states_and_parts_of_any_form(engine: AsyncEngine) -> None:
    odd: list[dict[str, Any]] = [
        {"author": "mine", "actions": {"agent_state": {"nodes": "a word"}}},
        {"author": "mine", "actions": {"agent_state": {}}},
        {"author": "mine", "content": {"role": "model"}},
        {"author": "mine", "content": {"parts": []}},
        {"author": "mine", "content": {"parts": [{"text": "a"}, {"executable_code": {"code": "1"}}]}},
        {"author": "mine", "content": {"parts": [{"code_execution_result": {"output": "1"}}]}},
        {"author": "mine", "content": {"parts": [{"text": "Hm.", "thought": True}, {"text": "So."}]}},
        {"author": "mine", "content": {"parts": [{"text": "Hm.", "thought": True}, {"text": ""}]}},
        {"author": "user", "content": {"parts": [{"text": "And?"}]}},
        {"author": "mine", "output": False},
        {"author": "mine", "actions": {"compaction": {"start_timestamp": 1.0}}},
        {},
    ]
    stamped = [
        {"id": f"{at:02}", "invocation_id": "inv-golden", "timestamp": float(at), **event}
        for at, event in enumerate(odd)
    ]
    golden = replace(load("custom"), name="odd", stored=stamped)
    async with engine.begin() as connection:
        await connection.execute(SESSION, {"session_id": golden.name})
        await connection.execute(INSERT, rows(golden))
        stored = [event_facts(e) for e in await connection.scalars(EVENTS_POSTGRES, parameters("odd"))]
    assert speechless(stored) == speechless(golden.prefix(len(odd)))
    assert [event.text for event in stored if event.text] == ["So."]


async def test_one_invocation_of_a_long_session_is_found_by_the_index(engine: AsyncEngine) -> None:
    golden = load("single")
    async with engine.begin() as connection:
        await connection.execute(SESSION, {"session_id": golden.name})
        await connection.execute(
            text(
                "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
                " SELECT 'e' || n, 'golden', 'triage', :session_id, 'inv-' || n / 10, now(), '{}'"
                " FROM generate_series(1, :count) n"
            ),
            {"session_id": golden.name, "count": LONG},
        )
        await connection.execute(INSERT, rows(golden))
        await connection.execute(text("ANALYZE events"))
        plan = await connection.scalars(text(f"EXPLAIN {EVENTS_POSTGRES}"), parameters(golden.name))
        explained = "\n".join(plan)
        stored = list(await connection.scalars(EVENTS_POSTGRES, parameters(golden.name)))
    assert len(stored) == len(golden.stored)
    assert "idx_events_invocation" in explained
    assert "Seq Scan" not in explained


@pytest.mark.parametrize("name", ["single", "confirmation"])
async def test_sqlite_gives_the_whole_events_in_order(name: str) -> None:
    golden = load(name)
    engine = create_async_engine("sqlite+aiosqlite://")
    async with engine.begin() as connection:
        await connection.execute(SQLITE_EVENTS)
        insert = text(str(INSERT).replace("CAST(:data AS jsonb)", ":data"))
        await connection.execute(
            insert, [{**row, "timestamp": str(row["timestamp"])} for row in rows(golden)]
        )
        stored = await connection.scalars(EVENTS_SQLITE, parameters(golden.name))
        assert [event_facts(event) for event in stored] == golden.prefix(len(golden.stored))
    await engine.dispose()
