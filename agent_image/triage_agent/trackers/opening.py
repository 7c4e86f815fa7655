"""From the tracker setting to a tracker."""

import re
from pathlib import Path
from typing import Final
from uuid import UUID

import httpx

from triage_agent.exceptions import ConfigurationError
from triage_agent.trackers.github import GitHubTracker
from triage_agent.trackers.github_api import PUBLIC_URL, GitHubSettings
from triage_agent.trackers.interface import Tracker
from triage_agent.trackers.postgres import PostgresTracker
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import DocsEnv

_FILE_PREFIX: Final = "file:"
_GITHUB_PREFIX: Final = "github:"
_REPOSITORY: Final = re.compile(r"[A-Za-z0-9_-]+/(?!\.{1,2}$)[A-Za-z0-9._-]+")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def open_tracker(
    setting: str,
    *,
    database: DatabaseUrl | None,
    run_id: UUID | None,
    github_token: str | None = None,
    github_url: str | None = None,
) -> Tracker:
    """Make the tracker that a value of ``DOCS_TRACKER`` names; nothing is opened before the first issue.

    Args:
        setting: ``postgres``, ``file:PATH`` or ``github:OWNER/NAME``.
        database: where ``postgres`` files; None: the sessions are not in Postgres.
        run_id: the run to note with each issue; None: work by hand.
        github_token: what ``github`` takes; a secret.
        github_url: GitHub's REST API; None: the public one.

    Raises:
        ConfigurationError: none of these, or one that cannot work.
    """
    if setting == "postgres":
        if database is None:
            raise ConfigurationError(
                f"{DocsEnv.TRACKER} is 'postgres', which needs a postgresql:// URL in {DocsEnv.DB}"
            )
        return PostgresTracker(database, run_id=run_id)
    if setting.startswith(_GITHUB_PREFIX):
        return GitHubTracker(_github_settings(setting, github_token, github_url))
    if not setting.startswith(_FILE_PREFIX) or setting == _FILE_PREFIX:
        raise ConfigurationError(
            f"{DocsEnv.TRACKER} is {setting!r}: expected 'postgres', 'file:PATH' or 'github:OWNER/NAME'"
        )
    path = Path(setting.removeprefix(_FILE_PREFIX)).resolve()
    if not path.parent.is_dir():
        raise ConfigurationError(f"{DocsEnv.TRACKER} is {setting!r}: there is no folder {path.parent}")
    # Its locks take a while to import, and only this one has any.
    from triage_agent.trackers.file import FileTracker

    return FileTracker(path)


def _github_settings(setting: str, token: str | None, given_url: str | None) -> GitHubSettings:
    repository = setting.removeprefix(_GITHUB_PREFIX)
    if not _REPOSITORY.fullmatch(repository):
        raise ConfigurationError(f"{DocsEnv.TRACKER} is {setting!r}: expected 'github:OWNER/NAME'")
    if not token:
        raise ConfigurationError(f"{DocsEnv.TRACKER} is {setting!r}, which needs {DocsEnv.GITHUB_TOKEN}")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(f"{DocsEnv.GITHUB_TOKEN} holds characters that no token has")
    # The message must not show a password that the URL may hold.
    problem = f"{DocsEnv.GITHUB_URL} must be an https URL without user, password and query"
    try:
        url = httpx.URL(given_url or PUBLIC_URL)
    except httpx.InvalidURL:
        raise ConfigurationError(problem) from None
    is_private = url.scheme == "https" or (url.scheme == "http" and url.host in _LOOPBACK)
    if not is_private or not url.host or url.userinfo or url.query or url.fragment:
        raise ConfigurationError(problem)
    return GitHubSettings(repository=repository, token=token, url=str(url))
