"""Alembic's entry: migrations run on the connection that `migrate` hands over, in its transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table="alembic_version",
    version_table_schema="triage",
)
context.run_migrations()
