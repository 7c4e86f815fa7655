"""What metrics, timelines and retries need of the past."""

from alembic import op

from triage_contract.database.migrating import run_script

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add it all."""
    for script in ("0003_metrics.sql", "0003_records.sql", "0003_retries.sql", "0003_rights.sql"):
        run_script(op.get_bind(), script)
