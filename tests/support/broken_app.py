"""A module that cannot be imported."""

raise RuntimeError("postgresql://user:hidden@host/db is\naway")
