"""Seven runs taken to filed issues while their agents are killed in the worst places, and what was seen of it."""

from triage_local.demo.showing import show

__all__ = ["show"]
