"""A module whose ``app`` is not an ADK app."""

app = {"name": "own"}
