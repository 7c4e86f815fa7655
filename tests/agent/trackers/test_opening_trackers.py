"""The tracker setting."""

from pathlib import Path

import pytest

from triage_agent.exceptions import ConfigurationError
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
