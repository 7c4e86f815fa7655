"""Fixtures of the replay tests."""

from support.stage import stage

__all__ = ["stage"]
