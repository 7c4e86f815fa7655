"""Signs of life: what the looks at the database say of the claimed attempts, one look after the other."""

from datetime import datetime

from triage_operator.snapshot import LifeSign
from triage_operator.stored import Look


class Lives:
    """What is known of the signs of life of open attempts, by their serials."""

    def __init__(self) -> None:
        self._reachable_since: datetime | None = None
        self._held: set[int] = set()
        self._free_since: dict[int, datetime] = {}
        self._known: frozenset[int] = frozenset()
        self._told: frozenset[int] = frozenset()
        self._cramped: frozenset[tuple[int, int]] = frozenset()
        self._resumed: frozenset[int] = frozenset()

    def take(self, look: Look) -> frozenset[int]:
        """Take a look in; give the attempts about which it says something new that calls for a decision."""
        if self._reachable_since is None:
            self._reachable_since = look.now
        known = look.held | look.free
        claimed, self._known = known - self._known, known
        resumed, self._resumed = look.resumed - self._resumed, look.resumed
        self._held = (self._held | look.held) & known
        # An attempt that was never seen holding its lock may have none: behind a pooler there is no way to one.
        lost = look.free & self._held
        self._free_since = {serial: self._free_since.get(serial, look.now) for serial in lost}
        telling = lost | look.silent | look.released
        news, self._told = telling - self._told, telling
        # News of its own: one that lives on can be lost later. A limit that was raised may be near again.
        cramped, self._cramped = look.cramped - self._cramped, look.cramped
        return news | claimed | resumed | {serial for serial, _ in cramped}

    def lose_sight(self) -> None:
        """Take in that the database was out of reach: what happens meanwhile cannot be seen, nor counted as silence.

        A server that restarted has dropped every lock, so that only those count that are seen held again. The next
        look is all news, since that of the last one may not have reached anybody.
        """
        self._reachable_since = None
        self._known = self._told = self._resumed = frozenset()
        self._cramped = frozenset()
        self._held.clear()
        self._free_since.clear()

    def sign(self, serial: int | None, now: datetime) -> LifeSign:
        """Give the sign of life of an attempt (None: there is none), at ``now`` by the database's clock."""
        return LifeSign(
            lock_free_since=None if serial is None else self._free_since.get(serial),
            reachable_since=self._reachable_since or now,
        )
