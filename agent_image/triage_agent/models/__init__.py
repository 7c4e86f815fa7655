"""Models by name, recorded and replayed replies, and what a failed call means."""

from triage_agent.models.building import build_model
from triage_agent.models.errors import ModelFailure, describe

__all__ = ["ModelFailure", "build_model", "describe"]
