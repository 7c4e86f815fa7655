"""The world outside: what was really done, noted by the tools and the models themselves, line by line in one file.

A line is written with one ``write`` to a file opened for appending, so that it is there whole or not at all, whatever
happens to the process after it.
"""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "CHAOS_LEDGER"
"""Environment variable with the ledger's path."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """What was done in one trial."""

    path: Path

    @classmethod
    def of_process(cls) -> "Ledger":
        """Give the ledger of the trial that this process is part of."""
        return cls(Path(os.environ[VARIABLE]))

    def __len__(self) -> int:
        return len(self.path.read_bytes().splitlines()) if self.path.exists() else 0

    def perform(self, effect: str, *, key: str, keyed: bool) -> bool:
        """Have an effect, unless it is a keyed one whose key is there; gives whether it was had."""
        with self._alone():
            if keyed and any(entry["key"] == key for entry in self._entries("effect")):
                return False
            self._note({"what": "effect", "effect": effect, "key": key, "pid": os.getpid()})
            return True

    def ask(self, model: str) -> None:
        """Note that a model was asked."""
        self._note({"what": "model", "model": model})

    def has(self, key: str) -> bool:
        """Whether the effect with a key was had."""
        return any(entry["key"] == key for entry in self._entries("effect"))

    def has_effect(self, effect: str) -> bool:
        """Whether an effect was had under any key."""
        return any(entry["effect"] == effect for entry in self._entries("effect"))

    def effects(self) -> Counter[str]:
        """Count the effects by name and arguments."""
        return Counter(entry["effect"] for entry in self._entries("effect"))

    def asked(self) -> int:
        """Count the questions to models."""
        return len(self._entries("model"))

    def _entries(self, what: str) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        entries = map(json.loads, self.path.read_text().splitlines())
        return [entry for entry in entries if entry["what"] == what]

    def _note(self, entry: dict[str, Any]) -> None:
        with self.path.open("ab", buffering=0) as file:
            file.write(json.dumps(entry).encode() + b"\n")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
