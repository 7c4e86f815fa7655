"""An agent tree that ADK cannot resume: an agent that hands over to a sequence."""

from google.adk.agents.llm_agent import LlmAgent
from google.adk.agents.sequential_agent import SequentialAgent
from google.adk.apps.app import App

from system.apps.scripted import Script

steps = SequentialAgent(name="steps", sub_agents=[LlmAgent(name="step", model=Script())])
app = App(name="own", root_agent=LlmAgent(name="own", model=Script(), sub_agents=[steps]))
