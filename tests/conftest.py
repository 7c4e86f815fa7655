"""Fixtures that every test may ask for."""

pytest_plugins = ["support.postgres", "support.databases"]
