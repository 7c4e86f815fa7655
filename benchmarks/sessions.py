"""Loading long sessions as a resume does, by ADK's own service and by ours, and the verdict on a run in one."""

import json
import time
from typing import Final

from google.adk.sessions.base_session_service import BaseSessionService
from sqlalchemy import text

from benchmarks.apps import open_bare_service
from benchmarks.attempts import Attempt, open_our_attempt
from benchmarks.figures import Measured
from triage_contract.database.engine import open_engine
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.rows import SessionKey, session_params
from triage_contract.database.url import DatabaseUrl
from triage_contract.verdict import EVENTS_PREPARED

LENGTHS: Final = (1_000, 10_000)
TIMES: Final = 5
EVENTS_OF_A_RUN: Final = 40

_FILL: Final = text(
    "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
    " SELECT 'e' || n, :app_name, :user_id, :session_id, 'inv-' || n / :of_a_run,"
    " to_timestamp(1700000000 + n) AT TIME ZONE 'UTC', CAST(:event AS jsonb)"
    " || jsonb_build_object('id', 'e' || n, 'invocation_id', 'inv-' || n / :of_a_run, 'timestamp', 1700000000 + n)"
    " FROM generate_series(1, :length) AS n"
)
_EVENT: Final = {
    "author": "bench",
    "content": {
        "role": "model",
        "parts": [
            {"function_call": {"id": "adk-0", "name": "look", "args": {"place": 1}}},
            {"text": "A page of the documentation says the following about tokens. " * 8},
        ],
    },
    "actions": {"state_delta": {}, "artifact_delta": {}},
    "usage_metadata": {"prompt_token_count": 900, "candidates_token_count": 40},
}


async def measure_sessions(url: DatabaseUrl) -> list[Measured]:
    """Load sessions of each length ``TIMES`` times, and judge a run in the longest."""
    measured = []
    for length in LENGTHS:
        async with open_our_attempt(url) as attempt, open_bare_service(url.dsn) as bare:
            await _fill(url, attempt, length)
            for name, service in (("ADK", bare), ("ours", attempt.service)):
                seconds = [await _load(service, attempt.run.session) for _ in range(TIMES + 1)]
                measured.append(Measured(name=f"load {length:,} events: {name}", seconds=seconds[1:]))
            if length == max(LENGTHS):
                name = f"verdict on {EVENTS_OF_A_RUN} of {length:,} events, in the database"
                measured.append(Measured(name=name, seconds=await _judge(url, attempt)))
    return measured


async def _fill(url: DatabaseUrl, attempt: Attempt, length: int) -> None:
    own = attempt.run.session
    await attempt.service.create_session(
        app_name=own.app_name, user_id=own.user_id, session_id=own.session_id
    )
    values = {"length": length, "of_a_run": EVENTS_OF_A_RUN, "event": json.dumps(_EVENT)}
    engine = open_engine(url, application="bench", token=attempt.token)
    try:
        async with engine.begin() as connection:
            await connection.execute(_FILL, {**session_params(own), **values})
        async with engine.connect() as connection:
            await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(
                text("VACUUM ANALYZE events")
            )
    finally:
        await engine.dispose()


async def _load(service: BaseSessionService, key: SessionKey) -> float:
    began = time.perf_counter()
    session = await service.get_session(app_name=key.app_name, user_id=key.user_id, session_id=key.session_id)
    seconds = time.perf_counter() - began
    assert session is not None
    return seconds


async def _judge(url: DatabaseUrl, attempt: Attempt) -> list[float]:
    own = attempt.run.session
    connection = PreparedConnection(url, application="bench")
    explained = [
        await connection.fetch(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {EVENTS_PREPARED}",
            own.app_name,
            own.user_id,
            own.session_id,
            "inv-100",
        )
        for _ in range(TIMES + 1)
    ]
    await connection.close()
    return [json.loads(rows[0]["QUERY PLAN"])[0]["Execution Time"] / 1000 for rows in explained[1:]]
