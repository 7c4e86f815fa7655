"""Ids of runs by hand."""

from typing import Final
from uuid import uuid4

from triage_contract.database.rows import SessionKey

BY_HAND: Final = "by-hand"
"""Cluster, namespace, agent and user of what no operator started."""


def new_session(app_name: str) -> SessionKey:
    """Give the key of a session that does not exist yet."""
    return SessionKey(app_name=app_name, user_id=BY_HAND, session_id=f"run-{uuid4()}")
