"""What every tracker does."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

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

    async def file(
        self, key: str | None, title: str, body: str, *, asked_at: datetime | None = None
    ) -> Filed:
        """File an issue, or find the one that the key has. Once this returns, the issue outlives any crash.

        Args:
            key: what makes a repeat a repeat; None: always file a new one.
            title: one line.
            body: Markdown.
            asked_at: since when there can be an issue with this key; None: nobody knows.

        Raises:
            TrackerError: refused; nothing was filed.
            UnansweredError: it may be filed; nobody knows.
            DatabaseUnreachableError: out of reach for long. The issue may be filed: the same key finds out.
        """


@runtime_checkable
class ReconcilingTracker(Tracker, Protocol):
    """A tracker that keeps no key of a caller's, but can be searched for what a lost call has done."""

    async def seek(self, key: str, *, begun_at: datetime) -> int | None:
        """Give the number of the issue that a call has filed.

        None: it filed none, and a process that was dead when this was called can file none any more.

        Args:
            key: the call's key.
            begun_at: when the call was begun, by whatever clock.

        Raises:
            AgentError: nobody knows; the tracker did not tell.
        """
