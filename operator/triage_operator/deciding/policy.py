"""What a policy is, and the instants at which it would act by itself."""

from collections.abc import Callable, Iterable
from datetime import datetime

from triage_operator.actions import Action
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

Policy = Callable[[Snapshot, DecidingSettings], Action | None]
"""Gives the action that a snapshot calls for, None where it has nothing to say."""

Alarm = Callable[[Snapshot, DecidingSettings], datetime | None]
"""Gives when a policy will act if nothing happens until then; None: not without something that wakes the run."""


def earliest(instants: Iterable[datetime | None]) -> datetime | None:
    """Give the first instant; None: there is none."""
    return min((instant for instant in instants if instant is not None), default=None)
