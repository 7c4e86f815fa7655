"""An agent that fails with all that it knows in its error."""

import os

from google.adk.agents.callback_context import CallbackContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App

from system.apps.scripted import Script


def tell(callback_context: CallbackContext) -> None:
    """Tell everything."""
    raise RuntimeError(f"it was {dict(os.environ)}")


app = App(name="own", root_agent=LlmAgent(name="own", model=Script(), before_agent_callback=tell))
