"""The GitHub tracker against a server that fails before, during and after the write, and answers late."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.github import REPOSITORY, TOKEN, Fault, GitHub, github
from triage_agent.exceptions import TrackerError, UnansweredError, UnservedError
from triage_agent.kinds import is_not_performed
from triage_agent.trackers import Filed
from triage_agent.trackers.github import CLOCK_DIFFERENCE, GitHubTracker, marker
from triage_agent.trackers.github_api import GitHubSettings
from triage_local.ports import HOST, free_port

KEY = "run-1/call-1"
NOW = datetime.now(UTC)
SECONDARY_LIMIT = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes."}


@pytest.fixture
async def there() -> AsyncIterator[GitHub]:
    async with github() as there:
        yield there


def a_tracker(there: GitHub, **settings: Any) -> GitHubTracker:
    """A tracker that is quick to try again, and patient with a slow machine."""
    quick = GitHubSettings(
        repository=REPOSITORY, token=TOKEN, url=there.url, retry_seconds=0.01, patience_seconds=10.0
    )
    return GitHubTracker(replace(quick, **settings))


async def file(tracker: GitHubTracker, key: str | None = KEY, **options: Any) -> Filed:
    return await tracker.file(key, "Tokens expire", "The page says never.", asked_at=NOW, **options)


async def test_the_issue_ends_in_a_marker_that_does_not_tell_the_key(there: GitHub) -> None:
    await file(a_tracker(there))

    (issue,) = there.issues
    assert issue["title"] == "Tokens expire"
    assert issue["body"] == f"The page says never.\n\n{marker(KEY)}"
    assert "call-1" not in issue["body"]


async def test_without_a_key_there_is_no_marker_and_no_look(there: GitHub) -> None:
    await file(a_tracker(there), key=None)

    assert there.issues[0]["body"] == "The page says never."
    assert there.requests == ["POST"]


async def test_another_process_finds_the_issue_under_its_key(there: GitHub) -> None:
    first = await file(a_tracker(there))
    assert await file(a_tracker(there)) == Filed(number=first.number, duplicate=True)
    assert len(there.issues) == 1


class TestLooking:
    """Finding an issue again among others."""

    async def test_beyond_the_first_page(self, there: GitHub) -> None:
        number = there.add(f"Mine\n\n{marker(KEY)}", created_at=NOW)
        for _ in range(250):
            there.add("Somebody else's", created_at=NOW + timedelta(seconds=1))

        assert (await file(a_tracker(there))).number == number
        assert there.requests == ["GET"] * 3

    async def test_an_issue_that_was_closed_or_worked_on_counts(self, there: GitHub) -> None:
        body = f"Mine\r\n\r\n{marker(KEY)}\r\n\r\nFixed by a person."
        number = there.add(body, created_at=NOW, state="closed")

        assert (await file(a_tracker(there))).number == number

    async def test_a_pull_request_with_the_same_text_does_not_count(self, there: GitHub) -> None:
        there.add(marker(KEY), created_at=NOW, pull_request={"url": "https://example.invalid"})

        assert await file(a_tracker(there)) == Filed(number=2, duplicate=False)

    async def test_a_copy_of_the_issue_does_not_stand_in_for_it(self, there: GitHub) -> None:
        number = there.add(marker(KEY), created_at=NOW)
        there.add(f"> {marker(KEY)}", created_at=NOW + timedelta(hours=1))

        assert (await file(a_tracker(there))).number == number

    async def test_issues_without_a_body_are_passed_over(self, there: GitHub) -> None:
        there.add(None, created_at=NOW)

        assert not (await file(a_tracker(there))).duplicate

    async def test_what_is_older_than_the_call_is_not_fetched(self, there: GitHub) -> None:
        for days in range(300, 0, -1):
            created = NOW - CLOCK_DIFFERENCE - timedelta(days=days)
            there.add("An old one", created_at=created, updated_at=f"{NOW:%Y-%m-%dT%H:%M:%SZ}")

        assert not (await file(a_tracker(there))).duplicate
        assert there.requests == ["GET", "POST"]

    async def test_clocks_that_differ_by_hours_hide_nothing(self, there: GitHub) -> None:
        number = there.add(marker(KEY), created_at=NOW - timedelta(hours=12))

        assert await a_tracker(there).seek(KEY, begun_at=NOW) == number

    async def test_nobody_knows_since_when_so_that_all_are_looked_at(self, there: GitHub) -> None:
        number = there.add(marker(KEY), created_at=NOW - timedelta(days=1000))

        filed = await a_tracker(there).file(KEY, "Title", "Body")
        assert filed == Filed(number=number, duplicate=True)

    async def test_a_link_to_another_host_does_not_get_the_token(self, there: GitHub) -> None:
        elsewhere = {"Link": '<https://elsewhere.example/issues?page=2>; rel="next"'}
        there.faults.append(Fault(method="GET", status=200, content=[], headers=elsewhere))

        with pytest.raises(TrackerError, match=r"next page is at elsewhere\.example, not at 127\.0\.0\.1"):
            await file(a_tracker(there))
        assert there.issues == []


class TestNothingHappened:
    """Failures after which it is certain that nothing was filed: made good, or the call's result."""

    async def test_nobody_listens(self) -> None:
        nowhere = GitHub(url=f"http://{HOST}:{free_port()}")
        with pytest.raises(
            TrackerError, match=r"cannot be reached \(ConnectError\); nothing was filed"
        ) as raised:
            await file(a_tracker(nowhere, patience_seconds=0.05))
        assert is_not_performed(raised.value)

    @pytest.mark.parametrize(
        "fault",
        [
            Fault(method="GET", status=502, content="<html>"),
            Fault(method="GET", status=None),
            Fault(method="POST", status=403, headers={"Retry-After": "0"}, content=SECONDARY_LIMIT),
            Fault(method="POST", status=429, headers={"Retry-After": "0"}),
            Fault(
                method="POST",
                status=403,
                headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1"},
                content={"message": "API rate limit exceeded"},
            ),
        ],
        ids=["bad gateway", "closed", "secondary limit", "too many", "primary limit"],
    )
    async def test_a_setback_is_waited_out(self, there: GitHub, fault: Fault) -> None:
        there.faults += [fault, fault]

        assert not (await file(a_tracker(there))).duplicate
        assert there.faults == []
        assert len(there.issues) == 1

    @pytest.mark.parametrize(
        ("headers", "content", "seconds"),
        [
            ({"Retry-After": "3600"}, SECONDARY_LIMIT, "3600"),
            ({}, SECONDARY_LIMIT, "60"),
            (
                {
                    "X-RateLimit-Remaining": "0",
                    "X-RateLimit-Reset": "1767226799",
                    "Date": "Thu, 01 Jan 2026 00:00:00 GMT",
                },
                {"message": "API rate limit exceeded"},
                "1200",
            ),
        ],
        ids=["told", "not told", "primary, by GitHub's clock"],
    )
    async def test_a_limit_that_outlasts_all_patience_is_named(
        self, there: GitHub, headers: dict[str, str], content: Any, seconds: str
    ) -> None:
        there.faults.append(Fault(method="POST", status=403, headers=headers, content=content))

        with pytest.raises(TrackerError, match=f"limits the rate of requests for {seconds} s; nothing was"):
            await file(a_tracker(there))
        assert there.issues == []

    @pytest.mark.parametrize(
        ("status", "content", "said"),
        [
            (403, {"message": "Resource not accessible by integration"}, "Resource not accessible"),
            (404, {"message": "Not Found"}, "Not Found"),
            (410, {"message": "Issues are disabled for this repo"}, "Issues are disabled"),
            (
                422,
                {"message": "Validation Failed", "errors": [{"field": "title", "code": "missing_field"}]},
                "Validation Failed, title missing_field",
            ),
            (307, "", "Temporary Redirect"),
        ],
    )
    @pytest.mark.parametrize("method", ["GET", "POST"])
    async def test_a_refusal_says_why(
        self, there: GitHub, method: str, status: int, content: Any, said: str
    ) -> None:
        there.faults.append(Fault(method=method, status=status, content=content))

        with pytest.raises(
            TrackerError, match=f"refused with {status}: {said}.*; nothing was filed"
        ) as raised:
            await file(a_tracker(there))
        assert is_not_performed(raised.value)
        assert there.issues == []

    async def test_a_list_that_cannot_be_read(self, there: GitHub) -> None:
        there.faults.append(Fault(method="GET", status=200, content={"message": "Hello"}))

        with pytest.raises(TrackerError, match="list of issues cannot be read; nothing was filed"):
            await file(a_tracker(there))
        assert there.issues == []

    async def test_the_token_is_never_shown(self, there: GitHub, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        there.faults.append(Fault(method="GET", status=502))
        there.faults.append(Fault(method="POST", status=422, content={"message": f"What is {TOKEN}?"}))

        with pytest.raises(TrackerError, match=r"What is \*\*\*\?") as raised:
            await file(a_tracker(there))
        shown = [str(raised.value), repr(a_tracker(there)._settings), caplog.text]
        assert not any(TOKEN in text for text in shown)


class TestInDoubt:
    """Failures after which nobody knows: they end the call, and the next attempt looks."""

    @pytest.mark.parametrize("writes", [False, True])
    @pytest.mark.parametrize("status", [None, 408, 500, 502, 504], ids=str)
    async def test_a_request_without_an_answer_is_not_repeated(
        self, there: GitHub, status: int | None, writes: bool
    ) -> None:
        there.faults.append(Fault(method="POST", status=status, writes=writes))

        with pytest.raises(UnansweredError, match="nobody knows whether the issue is filed") as raised:
            await file(a_tracker(there))
        assert not is_not_performed(raised.value)
        assert len(there.issues) == int(writes)
        assert there.requests == ["GET", "POST"]
        assert await a_tracker(there, request_seconds=0.2).seek(KEY, begun_at=NOW) == (1 if writes else None)

    async def test_an_answer_without_a_number(self, there: GitHub) -> None:
        there.faults.append(Fault(method="POST", status=200, content={}, writes=True))

        with pytest.raises(UnansweredError, match="answered 200 without an issue's number"):
            await file(a_tracker(there))
        assert len(there.issues) == 1

    async def test_a_late_answer_is_not_waited_for(self, there: GitHub) -> None:
        late = asyncio.Event()
        there.faults.append(Fault(method="POST", status=502, writes=True, before=late))

        with pytest.raises(UnansweredError, match=r"did not answer \((ReadTimeout|TimeoutError)\)"):
            await file(a_tracker(there, request_seconds=0.2))
        assert there.issues == []
        late.set()
        await there.quiet()

        assert len(there.issues) == 1
        assert (await file(a_tracker(there))).duplicate
        assert len(there.issues) == 1

    async def test_killed_in_its_request_the_next_attempt_finds_it(self, there: GitHub) -> None:
        there.faults.append(Fault(method="POST", writes=True, after=asyncio.Event()))
        lost = asyncio.create_task(file(a_tracker(there)))
        await there.came.wait()
        lost.cancel()
        await asyncio.wait({lost})

        assert await a_tracker(there).seek(KEY, begun_at=NOW) == 1


class TestSeeking:
    """What became of a lost call."""

    async def test_what_is_there_is_told_at_once(self, there: GitHub) -> None:
        filed = await file(a_tracker(there))
        there.requests.clear()

        assert await a_tracker(there).seek(KEY, begun_at=NOW) == filed.number
        assert there.requests == ["GET"]

    async def test_what_comes_while_a_request_may_still_be_under_way_is_found(self, there: GitHub) -> None:
        """It was sent by a process that is dead, and begun an hour ago by a clock that is wrong."""
        seeking = asyncio.create_task(
            a_tracker(there, request_seconds=0.5).seek(KEY, begun_at=NOW - timedelta(hours=1))
        )
        while there.requests != ["GET"]:
            await asyncio.sleep(0.01)
        await there.quiet()
        number = there.add(marker(KEY))

        assert await seeking == number
        assert there.requests == ["GET", "GET"]

    async def test_what_never_comes_did_not_happen(self, there: GitHub) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()

        assert await a_tracker(there, request_seconds=0.2).seek(KEY, begun_at=NOW) is None
        assert loop.time() - began >= 0.2
        assert there.requests == ["GET", "GET"]

    @pytest.mark.parametrize("nth", [1, 2])
    async def test_a_look_that_fails_is_no_answer(self, there: GitHub, nth: int) -> None:
        seeking = asyncio.create_task(a_tracker(there, request_seconds=0.2).seek(KEY, begun_at=NOW))
        refused = Fault(method="GET", status=401, content={"message": "Bad credentials"})
        while len(there.requests) < nth - 1:
            await asyncio.sleep(0.01)
        there.faults.append(refused)

        with pytest.raises(UnservedError, match="refused with 401: Bad credentials") as raised:
            await seeking
        assert not is_not_performed(raised.value)
        assert "nothing was filed" not in str(raised.value)
