"""Processes and folders that must not outlive the process that made them."""

from triage_local.guard.owner import Guard

__all__ = ["Guard"]
