"""The verdict on an invocation, from what was read of it."""

from collections.abc import Sequence

from triage_contract.database.rows import RunRow
from triage_contract.states import InDoubt
from triage_contract.verdict import CallFacts, EventFacts, Judgement, Root, RunFacts, verdict


def judge_by(
    run: RunRow, events: Sequence[EventFacts], calls: Sequence[CallFacts], in_doubt: InDoubt
) -> Judgement:
    """Judge a recorded run by what was read of it."""
    facts = RunFacts(root=None if run.root is None else Root.from_record(run.root), in_doubt=in_doubt)
    return verdict(events, facts, calls)
