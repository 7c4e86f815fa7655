"""A module that cannot be imported."""

raise RuntimeError("the settings of the warehouse are missing")
