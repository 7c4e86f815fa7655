"""Issues of a GitHub repository.

GitHub keeps no key of a caller's, so each issue carries a digest of its key in a comment that is not shown. It is
looked for in the list of issues, which has what was written: the search API has it only after a while.
"""

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError

from triage_agent.exceptions import TrackerError, UnansweredError, UnservedError
from triage_agent.trackers.github_api import GitHubApi, GitHubSettings
from triage_agent.trackers.interface import Filed
from triage_contract.states import ToolKind

CLOCK_DIFFERENCE: Final = timedelta(days=1)
"""How far apart GitHub's clock and those of a cluster may be. A day of issues is seldom more than one page."""


class _Issue(BaseModel):
    """An issue in a list; a pull request is one as well."""

    number: int
    body: str | None = None
    created_at: AwareDatetime
    pull_request: dict[str, Any] | None = None


class _FiledIssue(BaseModel):
    number: int


_PAGE: Final = TypeAdapter(list[_Issue])


class GitHubTracker:
    """Files with one request, after a look whether the key has an issue already.

    The look costs a request for each issue, also for calls that are new. Who else would know that they are is the
    journal, and a database that fails over to an older copy does not know it either.
    """

    kind: Final = ToolKind.RECONCILE

    def __init__(self, settings: GitHubSettings) -> None:
        """Keep what an issue needs; nothing connects yet."""
        self._settings = settings
        self._issues = f"/repos/{settings.repository}/issues"
        # Two requests with one key must not both find nothing; and GitHub wants requests one by one.
        self._lock = asyncio.Lock()

    async def file(
        self, key: str | None, title: str, body: str, *, asked_at: datetime | None = None
    ) -> Filed:
        """See ``Tracker.file``."""
        issue = {"title": title, "body": body if key is None else f"{body}\n\n{marker(key)}"}
        try:
            async with self._lock, GitHubApi(self._settings) as api:
                known = None if key is None else await self._find(api, key, asked_at)
                if known is not None:
                    return Filed(number=known, duplicate=True)
                answer = await api.post(self._issues, issue)
        except UnservedError as error:
            raise TrackerError(f"{error}; nothing was filed") from error
        try:
            filed = _FiledIssue.model_validate_json(answer.content)
        except ValidationError as error:
            raise UnansweredError(
                f"GitHub answered {answer.status_code} without an issue's number"
            ) from error
        return Filed(number=filed.number, duplicate=False)

    async def seek(self, key: str, *, begun_at: datetime) -> int | None:
        """See ``ReconcilingTracker.seek``.

        What a lost process had sent may still take effect for ``request_seconds``. They are counted from now on, by no
        clock but this process's own: the time since ``begun_at`` is one that two clocks measured, and its process may
        have been frozen before it sent anything.
        """
        async with self._lock, GitHubApi(self._settings) as api:
            number = await self._find(api, key, begun_at)
            if number is not None:
                return number
            await asyncio.sleep(self._settings.request_seconds)
            return await self._find(api, key, begun_at)

    async def _find(self, api: GitHubApi, key: str, since: datetime | None) -> int | None:
        """Give the number of the first issue with the key, whoever copied its text since then; None: there is none.

        ``since`` None: look at all issues of the repository.
        """
        params = {"state": "all", "sort": "created", "direction": "desc", "per_page": "100"}
        earliest = None if since is None else since.astimezone(UTC) - CLOCK_DIFFERENCE
        if earliest is not None:
            params["since"] = earliest.strftime("%Y-%m-%dT%H:%M:%SZ")
        found: list[int] = []
        page = await api.get(self._issues, params)
        while True:
            issues = _read(page)
            found += [
                it.number for it in issues if it.pull_request is None and marker(key) in (it.body or "")
            ]
            following = api.next_page(page)
            # `since` is about the last change: an old issue that somebody touched comes as well.
            is_past = earliest is not None and bool(issues) and issues[-1].created_at < earliest
            if following is None or is_past:
                return min(found, default=None)
            page = await api.get(following)


def marker(key: str) -> str:
    """Give what is put into the body of a key's issue: session and call are nobody's business there."""
    return f"<!-- triage-operator key={hashlib.sha256(key.encode()).hexdigest()} -->"


def _read(page: httpx.Response) -> list[_Issue]:
    try:
        return _PAGE.validate_json(page.content)
    except ValidationError as error:
        raise UnservedError("GitHub's list of issues cannot be read") from error
