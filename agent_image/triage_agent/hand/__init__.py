"""Running the docs-triage agent by hand: `triage start` and `triage resume`, on Postgres or SQLite."""
