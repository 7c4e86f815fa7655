"""Calls in doubt, sessions in one round trip, issues in the journal's transaction, and a role for each namespace."""

from alembic import op

from triage_contract.database.migrating import run_script

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add it all."""
    for script in ("0002_in_doubt.sql", "0002_sessions.sql", "0002_issues.sql", "0002_tenants.sql"):
        run_script(op.get_bind(), script)
