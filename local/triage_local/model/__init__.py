"""A model without a mind: a script behind an HTTP endpoint that speaks Gemini's API."""

from triage_local.model.dictated import DictatedScript
from triage_local.model.docs_triage import DocsTriageScript
from triage_local.model.faults import Fault
from triage_local.model.script import Call, Reply, Script, ToolAnswer, Turn
from triage_local.model.server import AskedFor, ScriptedModel

__all__ = [
    "AskedFor",
    "Call",
    "DictatedScript",
    "DocsTriageScript",
    "Fault",
    "Reply",
    "Script",
    "ScriptedModel",
    "ToolAnswer",
    "Turn",
]
