"""ADK's tables, ours, and the functions and triggers of the fence."""

from alembic import op

from triage_contract.database.migrating import run_script

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create everything."""
    for script in ("0001_adk.sql", "0001_tables.sql", "0001_functions.sql"):
        run_script(op.get_bind(), script)
