"""What is wrong with what was observed. Pure."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from triage_contract.quantities import parse_memory
from triage_contract.states import Cause, Phase, Suppressor
from triage_local.demo.agents import FIRST_MEMORY
from triage_local.demo.evidence import ByHand, Evidence, RunSeen
from triage_local.demo.names import RunName

CAUSES: Final[Mapping[str, frozenset[Cause]]] = {
    RunName.KILLED: frozenset({Cause.SIGKILL}),
    RunName.OUT_OF_MEMORY: frozenset({Cause.OOM}),
    RunName.DRAINED: frozenset({Cause.DRAIN}),
    # Nobody saw that pod end; what is known is whether its process had noted the SIGTERM.
    RunName.OPERATOR_AWAY: frozenset({Cause.VANISHED, Cause.SIGTERM, Cause.DELETED}),
    RunName.HALF_DONE: frozenset({Cause.SIGKILL}),
    RunName.IN_DOUBT: frozenset({Cause.SIGKILL}),
    RunName.UNDISTURBED: frozenset(),
}
"""What may be the cause of each run's one loss; none: it has no loss."""

_LOSSES: Final = re.compile(r'^triage_losses_total\{[^}]*cause="(\w+)"[^}]*\} (\S+)$', re.MULTILINE)


def problems(evidence: Evidence) -> tuple[str, ...]:
    """Say in a line each what should not be; empty: all is well."""
    return (*evidence.failures, *_problems(evidence))


def counted_losses(metrics: str) -> Counter[str]:
    """Give the losses by cause that the operator's metrics count."""
    counts: Counter[str] = Counter()
    for cause, value in _LOSSES.findall(metrics):
        counts[cause] += int(float(value))
    return +counts


def _problems(evidence: Evidence) -> Iterator[str]:
    seen = {run.name: run for run in evidence.runs}
    for name, causes in CAUSES.items():
        if name not in seen:
            yield f"{name}: there is no such run"
            continue
        for problem in (*_ending(seen[name]), *_losses(seen[name], causes)):
            yield f"{name}: {problem}"
    if evidence.stray_issues:
        yield f"the tracker has {evidence.stray_issues} issues that belong to no run"
    if evidence.by_hand is not None:
        yield from _by_hand(evidence.by_hand)
    lost = Counter(cause for run in evidence.runs for cause in run.causes)
    counted = counted_losses(evidence.metrics)
    if counted != lost and not evidence.failures:
        yield f"the metrics count {_shown(counted)}, the runs have {_shown(lost)}"


def _ending(run: RunSeen) -> Iterator[str]:
    if run.phase != Phase.SUCCEEDED:
        yield f"is {run.phase or 'without a status'}, not {Phase.SUCCEEDED}"
    if len(run.issues) != 1:
        yield f"has {len(run.issues)} issues in the tracker, not one"
    elif run.issue != run.issues[0]:
        yield f"its status names issue {run.issue}, the tracker has {run.issues[0]}"


def _losses(run: RunSeen, causes: frozenset[Cause]) -> Iterator[str]:
    lost, expected = run.causes, " or ".join(sorted(causes))
    if len(lost) != bool(causes) or not causes.issuperset(lost):
        yield f"was lost to {', '.join(lost) or 'nothing'}, not to {expected or 'nothing'}"
        return
    if len(run.attempts) != len(lost) + 1:
        yield f"took {len(run.attempts)} attempts for {len(lost)} losses"
        return
    if len(run.recovery_seconds) != len(lost):
        yield "the attempt after the loss stored nothing"
    first, last = run.attempts[0], run.attempts[-1]
    # The first one may have been given more in place, a moment before its end.
    more_memory = (last.memory_limit_bytes or 0) > parse_memory(FIRST_MEMORY)
    if run.name in (RunName.KILLED, RunName.HALF_DONE) and not run.suppressed.get(Suppressor.JOURNAL):
        yield "no call was answered from the journal: it was not killed where it should"
    if run.name == RunName.IN_DOUBT and not run.decisions:
        yield "nobody was asked about its call in doubt"
    if run.name == RunName.OUT_OF_MEMORY and not more_memory:
        yield "was resumed without more memory"
    if run.name == RunName.DRAINED and last.node == first.node:
        yield f"went on on {last.node}, which was drained"


def _by_hand(by_hand: ByHand) -> Iterator[str]:
    if not by_hand.refusal:
        yield "a resume of a finished run was not refused"
    if by_hand.issues_without_key != 2:
        yield f"without the key the report has {by_hand.issues_without_key} issues, not the two that show its worth"


def _shown(losses: Counter[str]) -> str:
    return ", ".join(f"{count} {cause}" for cause, count in sorted(losses.items())) or "no losses"
