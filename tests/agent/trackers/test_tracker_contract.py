"""What every tracker promises."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.github import REPOSITORY, TOKEN, github
from triage_agent.trackers import Filed, ReconcilingTracker, Tracker
from triage_agent.trackers.opening import open_tracker
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import ToolKind
from triage_local.postgres import PostgresServer


@pytest.fixture(params=["file", "postgres", "github"])
async def tracker(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Tracker]:
    if request.param == "file":
        yield open_tracker(f"file:{tmp_path / 'issues.json'}", database=None, run_id=None)
    elif request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        database = DatabaseUrl.parse(server.create_database())
        await migrate(database)
        yield open_tracker("postgres", database=database, run_id=None)
    else:
        async with github() as there:
            yield open_tracker(
                f"github:{REPOSITORY}",
                database=None,
                run_id=None,
                github_token=TOKEN,
                github_url=there.url,
            )


def test_declares_what_a_repeat_does(tracker: Tracker) -> None:
    is_searched = isinstance(tracker, ReconcilingTracker)
    assert tracker.kind is (ToolKind.RECONCILE if is_searched else ToolKind.IDEMPOTENT)


async def test_each_key_has_one_issue(tracker: Tracker) -> None:
    first = await tracker.file("run-1/call-1", "Tokens expire", "The page says never.")
    again = await tracker.file("run-1/call-1", "Tokens expire", "The page says never.")
    reworded = await tracker.file("run-1/call-1", "Another title", "Another body.")
    other = await tracker.file("run-1/call-2", "Tokens expire", "The page says never.")

    assert not first.duplicate
    assert again == reworded == Filed(number=first.number, duplicate=True)
    assert not other.duplicate
    assert other.number > first.number


async def test_a_repeat_is_known_by_its_key_alone(tracker: Tracker) -> None:
    now = datetime.now(UTC)
    first = await tracker.file("run-1/call-1", "Title", "Body", asked_at=now)
    again = await tracker.file("run-1/call-1", "Title", "Body", asked_at=now - timedelta(hours=1))
    once_more = await tracker.file("run-1/call-1", "Title", "Body", asked_at=now + timedelta(hours=1))

    assert again == once_more == Filed(number=first.number, duplicate=True)


async def test_no_key_always_files(tracker: Tracker) -> None:
    first = await tracker.file(None, "Tokens expire", "The page says never.")
    second = await tracker.file(None, "Tokens expire", "The page says never.")

    assert not first.duplicate
    assert not second.duplicate
    assert first.number != second.number


async def test_eight_callers_with_one_key_make_one_issue(tracker: Tracker) -> None:
    filed = await asyncio.gather(*(tracker.file("run-1/call-1", "Title", "Body") for _ in range(8)))

    assert len({issue.number for issue in filed}) == 1
    assert [issue.duplicate for issue in filed].count(False) == 1


async def test_callers_with_keys_of_their_own_get_numbers_of_their_own(tracker: Tracker) -> None:
    filed = await asyncio.gather(*(tracker.file(f"run-{n}/call-1", "Title", "Body") for n in range(8)))

    assert len({issue.number for issue in filed}) == 8
    assert not any(issue.duplicate for issue in filed)
