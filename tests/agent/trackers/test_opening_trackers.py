"""The tracker setting."""

from pathlib import Path

import pytest

from triage_agent.exceptions import ConfigurationError
from triage_agent.trackers.github import GitHubTracker
from triage_agent.trackers.opening import open_tracker
from triage_agent.trackers.postgres import PostgresTracker
from triage_contract.database.url import DatabaseUrl


def test_postgres_files_in_the_session_database() -> None:
    database = DatabaseUrl.parse("postgresql://127.0.0.1/sessions")
    assert isinstance(open_tracker("postgres", database=database, run_id=None), PostgresTracker)


async def test_a_file_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await open_tracker("file:issues.json", database=None, run_id=None).file("key", "Title", "Body")
    assert (tmp_path / "issues.json").exists()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("", r"DOCS_TRACKER is '': expected 'postgres', 'file:PATH' or 'github:OWNER/NAME'"),
        ("jira", r"DOCS_TRACKER is 'jira': expected"),
        ("file:", r"DOCS_TRACKER is 'file:': expected"),
        ("issues.json", r"DOCS_TRACKER is 'issues\.json': expected"),
        (
            "file:/nowhere/issues.json",
            r"DOCS_TRACKER is 'file:/nowhere/issues\.json': there is no folder /nowhere",
        ),
        ("postgres", r"DOCS_TRACKER is 'postgres', which needs a postgresql:// URL in DOCS_DB"),
    ],
)
def test_a_wrong_setting_names_the_variable(setting: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        open_tracker(setting, database=None, run_id=None)


def test_a_repository_on_github() -> None:
    for url in (None, "https://github.example/api/v3", "http://127.0.0.1:8080", "http://[::1]:8080/"):
        tracker = open_tracker(
            "github:acme/docs.io", database=None, run_id=None, github_token="ghp_x", github_url=url
        )
        assert isinstance(tracker, GitHubTracker)


@pytest.mark.parametrize(
    ("setting", "token", "url", "message"),
    [
        ("github:acme", "t", None, r"DOCS_TRACKER is 'github:acme': expected 'github:OWNER/NAME'"),
        ("github:acme/..", "t", None, r"DOCS_TRACKER is 'github:acme/\.\.': expected"),
        ("github:acme/docs/issues", "t", None, r"DOCS_TRACKER is 'github:acme/docs/issues': expected"),
        ("github:acme/docs", None, None, r"'github:acme/docs', which needs DOCS_GITHUB_TOKEN"),
        ("github:acme/docs", "a\nb", None, "DOCS_GITHUB_TOKEN holds characters that no token has"),
        ("github:acme/docs", "hunter2 x", None, "DOCS_GITHUB_TOKEN holds characters that no token has"),
        ("github:acme/docs", "hünter2", None, "DOCS_GITHUB_TOKEN holds characters that no token has"),
        ("github:acme/docs", "t", "http://github.example", "DOCS_GITHUB_URL must be an https URL"),
        ("github:acme/docs", "t", "http://127.0.0.1.example", "DOCS_GITHUB_URL must be an https URL"),
        ("github:acme/docs", "t", "https://me:hunter2@github.example", "DOCS_GITHUB_URL must be"),
        ("github:acme/docs", "t", "https://github.example/?key=hunter2", "DOCS_GITHUB_URL must be"),
        ("github:acme/docs", "t", "https://", "DOCS_GITHUB_URL must be"),
        ("github:acme/docs", "t", "https://github.example:hunter2/", "DOCS_GITHUB_URL must be"),
        ("github:acme/docs", "t", "github.example", "DOCS_GITHUB_URL must be"),
    ],
)
def test_a_wrong_setting_for_github_names_the_variable(
    setting: str, token: str | None, url: str | None, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        open_tracker(setting, database=None, run_id=None, github_token=token, github_url=url)
    assert "hunter2" not in str(raised.value)
    assert raised.value.__cause__ is None
