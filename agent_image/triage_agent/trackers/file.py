"""Issues in one JSON document, for work by hand and for tests."""

import asyncio
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from triage_agent.exceptions import TrackerError, UnansweredError
from triage_agent.trackers.interface import Filed
from triage_contract.states import ToolKind

LOCK_SECONDS: Final = 30.0
"""A holder that died has freed the lock; one that is stopped should not stop everybody."""


class Issue(BaseModel):
    """An issue as the file keeps it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    number: int = Field(ge=1)
    key: str | None
    title: str
    body: str
    created_at: str
    """ISO 8601, UTC."""
    duplicates: int = Field(ge=0)
    """How often the key came again."""


class IssueFile(BaseModel):
    """The whole document."""

    model_config = ConfigDict(extra="forbid", strict=True)

    issues: list[Issue]


class FileTracker:
    """Files under a lock that covers reading and writing, and replaces the document as a whole."""

    kind: Final = ToolKind.IDEMPOTENT

    def __init__(self, path: Path, *, lock_seconds: float = LOCK_SECONDS) -> None:
        """``path`` need not exist, its folder must. Beside it lies ``<path>.lock``, which stays."""
        # Whoever comes by a link has to meet the others at the same lock.
        self._path = path.resolve()
        self._lock_seconds = lock_seconds

    async def file(
        self, key: str | None, title: str, body: str, *, asked_at: datetime | None = None
    ) -> Filed:
        """See ``Tracker.file``."""
        return await asyncio.to_thread(self._file, key, title, body)

    def _file(self, key: str | None, title: str, body: str) -> Filed:
        # A lock file that is removed could be locked by one process and made anew by another.
        lock = FileLock(f"{self._path}.lock", timeout=self._lock_seconds, preserve_lock_file=True)
        try:
            with lock:
                document = self._read()
                filed = _add(document, key, title, body)
                self._replace(document, is_needed=not filed.duplicate)
        except Timeout as error:
            raise UnansweredError(
                f"{self._path}: another process held the lock for {self._lock_seconds:g} s"
            ) from error
        except OSError as error:
            raise UnansweredError(f"{self._path}: {_reason(error)}") from error
        return filed

    def _read(self) -> IssueFile:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return IssueFile(issues=[])
        try:
            return IssueFile.model_validate_json(content)
        except ValidationError as error:
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            raise TrackerError(
                f"{self._path} is not a file of issues, and is left alone: {reason}"
            ) from error

    def _replace(self, document: IssueFile, *, is_needed: bool) -> None:
        # One name for all: what a killed process left of it is overwritten, under the lock, by the next.
        draft = self._path.with_name(f".{self._path.name}.draft")
        content = document.model_dump_json(indent=2).encode()
        try:
            with draft.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self._path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            if not is_needed:
                return  # the issue is there; only the count of its duplicates is not
            # The document was read under the lock, and the key is not in it.
            raise TrackerError(f"{self._path}: {_reason(error)}; nothing was filed") from error
        # The issue is filed by now; only a loss of power could take that back.
        with suppress(OSError):
            _sync_folder(self._path.parent)


def _add(document: IssueFile, key: str | None, title: str, body: str) -> Filed:
    """Note the issue in the document, or one more duplicate of the issue that has the key."""
    for index, issue in enumerate(document.issues):
        if key is not None and issue.key == key:
            document.issues[index] = issue.model_copy(update={"duplicates": issue.duplicates + 1})
            return Filed(number=issue.number, duplicate=True)
    number = max((issue.number for issue in document.issues), default=0) + 1
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    document.issues.append(
        Issue(number=number, key=key, title=title, body=body, created_at=created_at, duplicates=0)
    )
    return Filed(number=number, duplicate=False)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder outlive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
