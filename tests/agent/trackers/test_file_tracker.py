"""The file tracker: locking across processes, and a document that is always whole."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from triage_agent.exceptions import TrackerError, UnansweredError
from triage_agent.trackers.file import FileTracker

FILE_ONE = """
import asyncio, sys
from pathlib import Path
from triage_agent.trackers.file import FileTracker

filed = asyncio.run(FileTracker(Path(sys.argv[1])).file(sys.argv[2], "Title", "Body"))
print(filed.number, filed.duplicate)
"""

DIE_BEFORE_THE_RENAME = """
import asyncio, os, signal, sys
from pathlib import Path
from triage_agent.trackers.file import FileTracker

os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(FileTracker(Path(sys.argv[1])).file(sys.argv[2], "Title", "Body"))
"""

DIE_AFTER_THE_RENAME = """
import asyncio, os, signal, sys
from pathlib import Path
from triage_agent.trackers.file import FileTracker

rename = Path.replace
Path.replace = lambda *paths: (rename(*paths), os.kill(os.getpid(), signal.SIGKILL))
asyncio.run(FileTracker(Path(sys.argv[1])).file(sys.argv[2], "Title", "Body"))
"""


async def start(script: str, *arguments: str | Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, *map(str, arguments), stdout=asyncio.subprocess.PIPE
    )


def issues_in(path: Path) -> list[dict[str, Any]]:
    issues: list[dict[str, Any]] = json.loads(path.read_text())["issues"]
    return issues


async def test_the_document_keeps_what_was_filed(tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    await FileTracker(path).file("run-1/call-1", "Täglich läuft 🔑 ab", "Zeile 1\nZeile 2")
    await FileTracker(path).file("run-1/call-1", "Täglich läuft 🔑 ab", "Zeile 1\nZeile 2")

    (issue,) = issues_in(path)
    assert issue["key"] == "run-1/call-1"
    assert (issue["number"], issue["duplicates"]) == (1, 1)
    assert (issue["title"], issue["body"]) == ("Täglich läuft 🔑 ab", "Zeile 1\nZeile 2")


async def test_eight_processes_with_one_key_make_one_issue(tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    processes = [await start(FILE_ONE, path, "run-1/call-1") for _ in range(8)]
    answers = sorted([(await process.communicate())[0].decode().split() for process in processes])

    assert answers == [["1", "False"]] + [["1", "True"]] * 7
    (issue,) = issues_in(path)
    assert issue["duplicates"] == 7


async def test_a_process_killed_before_the_rename_leaves_the_old_document(tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    await FileTracker(path).file("run-1/call-1", "Title", "Body")
    before = path.read_bytes()

    process = await start(DIE_BEFORE_THE_RENAME, path, "run-1/call-2")
    assert await process.wait() == -signal.SIGKILL

    assert path.read_bytes() == before
    filed = await FileTracker(path).file("run-1/call-2", "Title", "Body")
    assert (filed.number, filed.duplicate) == (2, False)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["issues.json", "issues.json.lock"]


async def test_a_process_killed_after_the_rename_has_filed(tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    process = await start(DIE_AFTER_THE_RENAME, path, "run-1/call-1")
    assert await process.wait() == -signal.SIGKILL

    filed = await FileTracker(path).file("run-1/call-1", "Title", "Body")

    assert (filed.number, filed.duplicate) == (1, True)
    assert len(issues_in(path)) == 1


async def test_a_write_that_fails_leaves_the_old_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "issues.json"
    tracker = FileTracker(path)
    await tracker.file("run-1/call-1", "Title", "Body")
    before = path.read_bytes()

    def disk_full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", disk_full)
        with pytest.raises(TrackerError, match=r"issues\.json: No space left on device; nothing was filed$"):
            await tracker.file("run-1/call-2", "Title", "Body")

    assert path.read_bytes() == before
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["issues.json", "issues.json.lock"]


async def test_a_duplicate_is_known_although_it_cannot_be_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "issues.json"
    tracker = FileTracker(path)
    await tracker.file("run-1/call-1", "Title", "Body")
    before = path.read_bytes()

    def read_only(descriptor: int) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", read_only)
        filed = await tracker.file("run-1/call-1", "Title", "Body")

    assert (filed.number, filed.duplicate) == (1, True)
    assert path.read_bytes() == before


async def test_a_document_that_cannot_be_read_may_hold_the_issue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "issues.json"
    tracker = FileTracker(path)
    await tracker.file("run-1/call-1", "Title", "Body")

    def broken(_path: Path) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", broken)
        with pytest.raises(UnansweredError, match=r"issues\.json: Input/output error$"):
            await tracker.file("run-1/call-1", "Title", "Body")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"issues": [',
        b"[]",
        b'{"version": 3}',
        b'{"issues": [{"number": "1"}]}',
        b'{"issues": [], "owner": "somebody else"}',
        b"\xff\xfe\x00",
    ],
    ids=["empty", "torn", "list", "foreign", "foreign issue", "foreign field", "binary"],
)
async def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "issues.json"
    path.write_bytes(content)

    with pytest.raises(TrackerError, match=r"issues\.json is not a file of issues, and is left alone: \w"):
        await FileTracker(path).file("run-1/call-1", "Title", "Body")

    assert path.read_bytes() == content


async def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(UnansweredError, match="Is a directory"):
        await FileTracker(tmp_path).file("run-1/call-1", "Title", "Body")


async def test_a_holder_that_never_ends_is_named(tmp_path: Path) -> None:
    path = tmp_path / "issues.json"
    with (
        FileLock(f"{path}.lock", preserve_lock_file=True),
        pytest.raises(UnansweredError, match=r"another process held the lock for 0\.05 s"),
    ):
        await FileTracker(path, lock_seconds=0.05).file("run-1/call-1", "Title", "Body")


async def test_a_link_leads_to_the_same_document(tmp_path: Path) -> None:
    path, link = tmp_path / "issues.json", tmp_path / "link.json"
    await FileTracker(path).file("run-1/call-1", "Title", "Body")
    link.symlink_to(path)

    filed = await FileTracker(link).file("run-1/call-1", "Title", "Body")

    assert filed.duplicate
    assert link.is_symlink()
