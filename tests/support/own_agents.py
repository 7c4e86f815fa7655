"""Agents of a user's own: the modules of ``system.apps`` in an image."""

from typing import Any, Final

OWN_IMAGE: Final = "own-agents:test"
"""The docs-triage image with the modules of ``system.apps`` in it."""


def own_agent(app: str, **variables: str) -> dict[str, Any]:
    """Give what the spec of a TriageAgent says of the app of a module, and its environment."""
    env = [{"name": name, "value": value} for name, value in variables.items()]
    template = {"spec": {"containers": [{"name": "agent", "env": env}]}}
    return {"image": OWN_IMAGE, "app": f"system.apps.{app}:app", "model": None, "podTemplate": template}
