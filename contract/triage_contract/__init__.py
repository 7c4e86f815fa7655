"""What operator and agent share: names, states, schema, database, verdict."""
