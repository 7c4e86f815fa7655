"""Where issues are filed: one small interface, and a module for each tracker."""

from triage_agent.trackers.interface import Filed, ReconcilingTracker, Tracker

__all__ = ["Filed", "ReconcilingTracker", "Tracker"]
