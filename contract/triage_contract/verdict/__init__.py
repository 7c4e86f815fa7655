"""What became of an invocation: the facts, the rules that judge them, and the statement that fetches them."""

from triage_contract.verdict.doubts import DoubtfulCall, Remedy
from triage_contract.verdict.facts import (
    Call,
    CallFacts,
    EventFacts,
    Root,
    RootKind,
    RunFacts,
    event_facts,
)
from triage_contract.verdict.rules import Judgement, verdict
from triage_contract.verdict.stored import CALLS, EVENTS, EVENTS_PREPARED, WHOLE_EVENTS

__all__ = [
    "CALLS",
    "EVENTS",
    "EVENTS_PREPARED",
    "WHOLE_EVENTS",
    "Call",
    "CallFacts",
    "DoubtfulCall",
    "EventFacts",
    "Judgement",
    "Remedy",
    "Root",
    "RootKind",
    "RunFacts",
    "event_facts",
    "verdict",
]
