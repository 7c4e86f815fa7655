"""From the tracker setting to a tracker."""

from pathlib import Path
from typing import Final
from uuid import UUID

from triage_agent.exceptions import ConfigurationError
from triage_agent.trackers.file import FileTracker
from triage_agent.trackers.interface import Tracker
from triage_agent.trackers.postgres import PostgresTracker
from triage_contract.database.url import DatabaseUrl
from triage_contract.names import DocsEnv

_FILE_PREFIX: Final = "file:"


def open_tracker(setting: str, *, database: DatabaseUrl | None, run_id: UUID | None) -> Tracker:
    """Make the tracker that a value of ``DOCS_TRACKER`` names; nothing is opened before the first issue.

    Args:
        setting: ``postgres`` or ``file:PATH``.
        database: where ``postgres`` files; None: the sessions are not in Postgres.
        run_id: the run to note with each issue; None: work by hand.

    Raises:
        ConfigurationError: neither of the two, or one that cannot work.
    """
    if setting == "postgres":
        if database is None:
            raise ConfigurationError(
                f"{DocsEnv.TRACKER} is 'postgres', which needs a postgresql:// URL in {DocsEnv.DB}"
            )
        return PostgresTracker(database, run_id=run_id)
    if not setting.startswith(_FILE_PREFIX) or setting == _FILE_PREFIX:
        raise ConfigurationError(f"{DocsEnv.TRACKER} is {setting!r}: expected 'postgres' or 'file:PATH'")
    path = Path(setting.removeprefix(_FILE_PREFIX)).resolve()
    if not path.parent.is_dir():
        raise ConfigurationError(f"{DocsEnv.TRACKER} is {setting!r}: there is no folder {path.parent}")
    return FileTracker(path)
