"""Which agent trees ADK 2.13.0 can resume, what identifies one, and how an app is made resumable."""

from triage_agent.shapes.inspecting import Shape, inspect_shape, resumable
from triage_agent.shapes.refusing import SAVES_STATE

__all__ = ["SAVES_STATE", "Shape", "inspect_shape", "resumable"]
