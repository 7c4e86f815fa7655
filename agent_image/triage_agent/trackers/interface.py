"""What every tracker does."""

from dataclasses import dataclass
from typing import Protocol

from triage_contract.states import ToolKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    """An issue that the tracker holds."""

    number: int
    duplicate: bool
    """The key had this number before: nothing was filed now."""


class Tracker(Protocol):
    """Files issues, at most one for each key."""

    @property
    def kind(self) -> ToolKind:
        """What repeating ``file`` with the same key does."""

    async def file(self, key: str | None, title: str, body: str) -> Filed:
        """File an issue, or find the one that the key has.

        ``None`` as a key always files a new one. Once this returns, the issue outlives any crash.

        Raises:
            TrackerError: refused; nothing was filed.
            DatabaseUnreachableError: out of reach for long. The issue may be filed: the same key finds out.
        """
