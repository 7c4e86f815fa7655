"""What a program left behind."""

from pathlib import Path

import psutil


def processes_of(folder: Path) -> list[psutil.Process]:
    """Find processes with a folder in their arguments, their environment or as their working directory."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.cwd(), *process.environ().values()]
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if any(str(folder) in word for word in words):
            found.append(process)
    return found
