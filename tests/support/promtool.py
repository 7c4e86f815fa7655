"""promtool, where it can be had."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@cache
def _find() -> tuple[Path | None, str]:
    found = subprocess.run(
        [ROOT / "hack" / "prometheus-programs"], capture_output=True, text=True, check=False
    )
    return (
        (Path(found.stdout.strip()) / "promtool", "")
        if found.returncode == 0
        else (None, found.stderr.strip())
    )


def promtool(*arguments: str | Path) -> str:
    """Run promtool, and give what it says; skips the test where there is none."""
    program, missing = _find()
    if program is None:
        pytest.skip(missing)
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
