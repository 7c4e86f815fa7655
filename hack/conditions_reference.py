"""The page about conditions, from the reasons that the operator gives."""

import ast
import inspect
from collections.abc import Iterable
from typing import Final

from triage_operator.reasons import Reason
from triage_operator.status import HELD_UP

_PAGE: Final = """<!-- Made by hack/generate.py from operator/triage_operator/reasons.py; edit that. -->
# Conditions

The operator is the only one that sets conditions, and sets all of them at each change. A reason is one word and is
never renamed; the message beside it is for people. The same word is the reason of the Event, of the log line and, at a
run's end, in the metrics.

A **TriageRun** has two. `Finished` is True when the run is over, with the reason; False while it goes on. `Progressing`
is True while an attempt is at work or the next one starts by itself; False when the run is over, or when something
holds it up. Absent: no operator has seen the run yet.

A **TriageAgent** has two. `Ready` is True when attempts can be started; False when something that the spec refers to is
missing or cannot be used, and runs wait. `ToolsDeclared` is False while there are tools of no declared kind; absent: no
attempt has told its tools yet.
"""

_OF_AGENTS: Final = (Reason.READY, Reason.BAD_AGENT, Reason.TOOLS_DECLARED, Reason.TOOLS_UNDECLARED)
_OF_EVENTS: Final = (
    Reason.STARTING,
    Reason.RAISING_MEMORY,
    Reason.HANDED_OFF,
    Reason.RESUMING,
    Reason.DECIDED,
    Reason.DECISION_IGNORED,
    Reason.FOREIGN_POD,
    Reason.CLEANING_UP,
)
_OF_ENDS: Final = (
    Reason.COMPLETED,
    Reason.CANCELLED,
    Reason.FAILED,
    Reason.ABORTED,
    Reason.MODEL_ERROR,
    Reason.NO_PROGRESS,
    Reason.TOO_MANY_ATTEMPTS,
    Reason.DEADLINE_EXCEEDED,
    Reason.START_DEADLINE_EXCEEDED,
    Reason.BAD_CONFIGURATION,
    Reason.UNKNOWN_INVOCATION,
)
_OF_NOBODY: Final = (Reason.DELETED, Reason.EXPIRED)
"""Reasons of metrics and log lines about runs that are gone."""


def render_conditions_reference() -> str:
    """Return the page, in Markdown."""
    elsewhere = {*_OF_AGENTS[:1], *_OF_AGENTS[2:], *_OF_EVENTS, *_OF_ENDS, *_OF_NOBODY, *HELD_UP}
    return "\n".join(
        [
            _PAGE,
            "## A run that is held up (`Progressing` False)",
            "",
            *_table(reason for reason in Reason if reason in HELD_UP),
            "",
            "## A run that goes on by itself (`Progressing` True)",
            "",
            *_table(reason for reason in Reason if reason not in elsewhere),
            "",
            "## A run that is over (`Finished` True)",
            "",
            "One that failed for a call in doubt has the reason `InDoubt`.",
            "",
            *_table(_OF_ENDS),
            "",
            "## Events of a run that are no condition",
            "",
            *_table(_OF_EVENTS),
            "",
            "## Agents",
            "",
            *_table(_OF_AGENTS),
            "",
        ]
    )


def _table(reasons: Iterable[Reason]) -> list[str]:
    rows = ["| Reason | What it means | What it asks of you |", "|---|---|---|"]
    for reason in reasons:
        meaning, _, to_do = " ".join(_DOCSTRINGS[reason.name].split()).partition(" To do: ")
        rows.append(f"| `{reason}` | {meaning} | {to_do or 'Nothing.'} |")
    return rows


def _read_docstrings() -> dict[str, str]:
    """Read the text below each member, which Python itself does not keep."""
    (definition,) = ast.parse(inspect.getsource(Reason)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for member, text in zip(definition.body, definition.body[1:], strict=False):
        match member, text:
            case ast.Assign(targets=[ast.Name(id=name)]), ast.Expr(value=ast.Constant(value=str(said))):
                found[name] = said
    return found


_DOCSTRINGS: Final = _read_docstrings()
