"""The guard process: reads lines until its standard input ends, then ends groups and removes folders.

Run as a script with nothing but the standard library, since it starts with ``-I -S``.
"""

import os
import shutil
import signal
import sys
import time

_PATIENCE_SECONDS = 1.0


def _send(group: int, number: int) -> bool:
    """Signal a process group; whether it still exists. A zombie that nobody reaps counts as existing."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # what macOS answers for a group of zombies
        return False
    return True


def _end(groups: dict[int, int]) -> None:
    left = [group for group, number in groups.items() if _send(group, number)]
    until = time.monotonic() + _PATIENCE_SECONDS
    while left and time.monotonic() < until:
        time.sleep(0.01)
        left = [group for group in left if _send(group, 0)]
    for group in left:
        _send(group, signal.SIGKILL)


def _remove(folder: str) -> None:
    # Another guard may be at work in the same folder, and a group that was just killed may still write.
    until = time.monotonic() + _PATIENCE_SECONDS
    while os.path.lexists(folder) and time.monotonic() < until:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.01)


def main() -> None:
    """Follow the owner's lines, then clean up."""
    groups: dict[int, int] = {}
    folders: list[str] = []
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "group":
            group, number = rest.split()
            groups[int(group)] = int(number)
        elif word == "forget":
            groups.pop(int(rest), None)
        elif word == "folder":
            folders.append(rest)
    _end(groups)
    for folder in folders:
        _remove(folder)


if __name__ == "__main__":
    main()
