"""Where issues are filed: one small interface, and a module for each tracker."""

from triage_agent.trackers.interface import Filed, Tracker
from triage_agent.trackers.opening import open_tracker

__all__ = ["Filed", "Tracker", "open_tracker"]
