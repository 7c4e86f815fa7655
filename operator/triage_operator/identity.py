"""Which session and invocation a TriageRun has.

All of it follows from the run's UID, so that a lost status loses nothing.
"""

import hashlib
from typing import Final
from uuid import UUID

from triage_contract.api import TriageRun
from triage_contract.database.rows import RunRow, SessionKey
from triage_contract.states import RunState

USER: Final = "triage"
"""ADK's user of every run."""

MAX_APP_NAME: Final = 128
"""Length of the column in ADK's tables."""


def app_name(namespace: str, agent: str) -> str:
    """Give ADK's application name of an agent: ``<namespace>/<agent>``, a hash for its end where too long."""
    name = f"{namespace}/{agent}"
    if len(name) <= MAX_APP_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    return f"{name[: MAX_APP_NAME - len(digest) - 1]}-{digest}"


def session_key(run: TriageRun) -> SessionKey:
    """Give the ADK session of a run."""
    return SessionKey(
        app_name=app_name(run.metadata.namespace, run.spec.agent_ref.name),
        user_id=USER,
        session_id=f"run-{run.metadata.uid}",
    )


def invocation_id(run: TriageRun) -> str:
    """Give the ADK invocation of a run."""
    return f"inv-{run.metadata.uid}"


def run_row(run: TriageRun, cluster_id: str) -> RunRow:
    """Give the row of a run that is not recorded yet."""
    return RunRow(
        id=UUID(run.metadata.uid),
        cluster_id=cluster_id,
        namespace=run.metadata.namespace,
        name=run.metadata.name,
        agent=run.spec.agent_ref.name,
        session=session_key(run),
        invocation_id=invocation_id(run),
        message={"parts": [{"text": run.spec.report}]},
        root=None,
        state=RunState.ACTIVE,
        reason=None,
        created_at=None,
        ended_at=None,
    )
