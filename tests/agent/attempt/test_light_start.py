"""What an agent process does without until its claim: a recovery waits for each of its imports."""

import subprocess
import sys

_LOAD = """
import sys
import triage_agent.cli, triage_agent.attempt.process, triage_agent.docs_triage.agent, triage_agent.attempt.working
print(*sorted({"alembic", "filelock", "kubernetes", "litellm", "sqlalchemy"} & set(sys.modules)))
"""


def test_an_attempt_is_claimed_without_the_libraries_that_it_may_never_need() -> None:
    loaded = subprocess.run([sys.executable, "-c", _LOAD], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
