"""The recorded runs of ``tests/contract/verdict/golden``: events, and the verdict expected after each of them.

``<name>.json`` is written by ``hack/record_golden.py``, ``<name>.txt`` by hand: a line for each prefix, from none of
the events to all, with the expected judgement and, after the bar, what the last event of the prefix is.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage_contract.verdict import EventFacts, Judgement, Root, RootKind, event_facts

GOLDEN = Path(__file__).parent.parent / "contract" / "verdict" / "golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """A recorded run."""

    name: str
    root: Root
    stored: list[dict[str, Any]]

    def prefix(self, count: int) -> list[EventFacts]:
        """Return what is read back when the process is killed after its first ``count`` commits.

        ADK reads events by (timestamp, id). That is not always the order of their commits: a confirmation is
        asked for before the response that says so is stored, and is the younger event.
        """
        committed = sorted(self.stored[:count], key=lambda event: (event["timestamp"], event["id"]))
        return [event_facts(event) for event in committed]

    def gist(self, count: int) -> str:
        """Return what the last of the first ``count`` commits is."""
        return _gist(event_facts(self.stored[count - 1])) if count else "nothing"


def load(name: str) -> Golden:
    recorded = json.loads((GOLDEN / f"{name}.json").read_text())
    root = Root(name=recorded["root"]["name"], kind=RootKind(recorded["root"]["kind"]))
    return Golden(name=name, root=root, stored=recorded["events"])


def names() -> list[str]:
    return sorted(path.stem for path in GOLDEN.glob("*.json"))


def _gist(event: EventFacts) -> str:
    told = [
        *(f"{'asks' if call.long_running else 'calls'} {call.name}" for call in event.calls),
        *(["answers"] if event.answers else []),
        *([f"says {event.text!r}"] if event.text else []),
        *([f"hands over to {event.transfer_to}"] if event.transfer_to else []),
        *([f"nodes {list(event.nodes)}" if event.nodes else "state"] if event.nodes is not None else []),
        *(["output"] if event.said and not (event.calls or event.answers or event.text) else []),
        *([f"error {event.error_code}"] if event.error_code else []),
        *(["end"] if event.end_of_agent else []),
    ]
    return f"{event.author}: {', '.join(told) or 'state delta'}"


def shown(judgement: Judgement) -> str:
    """Render a judgement as in the first column of the expectations."""
    words = [judgement.verdict.value]
    if judgement.calls:
        words.append(f"[{', '.join(call.name for call in judgement.calls)}]")
    if judgement.doubts:
        words.append(f"[{', '.join(f'{doubt.name}: {doubt.remedy}' for doubt in judgement.doubts)}]")
    if judgement.lost:
        words.append(f"lost [{', '.join(call.name for call in judgement.lost)}]")
    if judgement.marked or judgement.sealed:
        words.append("(marked)" if judgement.marked else "(sealed)")
    return " ".join(words)


def expectations(name: str) -> list[str]:
    """Return the expected lines of a run, in the form ``<judgement> | <last commit>``."""
    lines = (GOLDEN / f"{name}.txt").read_text().splitlines()
    columns = [line.split("|", 1) for line in lines if line and not line.startswith("#")]
    return [f"{judgement.strip()} | {event.strip()}" for judgement, event in columns]
