"""The command `triage`, as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_TESTS = Path(__file__).parent.parent


def triage(
    *arguments: str, environment: Mapping[str, str], folder: Path | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[str]:
    """Run it with this environment and nothing of ours; ``given`` is its standard input."""
    ended = subprocess.run(
        [Path(sys.executable).with_name("triage"), *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_TESTS), **environment},
        cwd=folder,
        input=given,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(
        ended.args, ended.returncode, ended.stdout.decode(), ended.stderr.decode()
    )
