"""What ADK 2.13.0 would see and do on a resume: open calls, calls it would pass over, who has the last word.

Found by killing and resuming the recorded runs, and in ``flows/llm_flows/core/_resume.py`` and
``agents/invocation_context.py`` of google-adk 2.13.0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from triage_contract.names import EFFECT_KEY_PREFIX
from triage_contract.states import CallState
from triage_contract.verdict.facts import USER, Call, CallFacts, EventFacts, Root, RootKind, RunFacts

SHELLS: Final = frozenset({RootKind.SEQUENTIAL, RootKind.PARALLEL, RootKind.LOOP})
"""Roots that only run other agents. Once one has stored its end marker, ADK never goes on with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call without an answer, and the index of the event that made it."""

    at: int
    call: Call


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """The facts of an invocation, and what follows from them at once.

    ``journal`` None: none is kept. ``owner`` is the agent with the last word; None: the root is not known.
    The rest are indices, -1 for none: of the last transfer, of the last content, output or error, of the
    owner's last end marker, and of the last agent state of a workflow root.
    """

    events: Sequence[EventFacts]
    run: RunFacts | None
    root: Root | None
    journal: Sequence[CallFacts] | None
    open: Sequence[OpenCall]
    owner: str | None
    transferred: int
    said: int
    ended: int
    state: int

    @property
    def last(self) -> EventFacts | None:
        """The last event that says something or is an error."""
        return self.events[self.said] if self.said >= 0 else None

    @property
    def nodes(self) -> tuple[int, ...]:
        """The statuses of a workflow root's nodes, as stored last."""
        return self.events[self.state].nodes or () if self.state >= 0 else ()

    @property
    def text(self) -> str | None:
        """The last words of an agent."""
        texts = (event.text for event in reversed(self.events) if event.author != USER)
        return next((text for text in texts if text), None)


def gather(
    events: Sequence[EventFacts], run: RunFacts | None, journal: Sequence[CallFacts] | None
) -> History:
    """Put the facts of an invocation together. ``events`` come in the order of (timestamp, id)."""
    events = [event for event in events if not event.compaction]
    root = run.root if run is not None else None
    kind = root.kind if root is not None else None
    owner = root.name if root is not None else None
    transferred = -1
    if kind is RootKind.LLM:  # Any other root runs on when one of its agents hands over to another.
        transferred = _last(events, lambda event: event.transfer_to is not None)
        if transferred >= 0:
            owner = events[transferred].transfer_to
    return History(
        events=events,
        run=run,
        root=root,
        journal=journal,
        open=_open_calls(events),
        owner=owner,
        transferred=transferred,
        said=_last(events, lambda event: event.said or event.failed),
        ended=_last(events, lambda event: event.end_of_agent and event.author == owner),
        state=_last(
            events,
            lambda event: kind is RootKind.WORKFLOW and bool(event.nodes) and event.author == owner,
        ),
    )


def _open_calls(events: Sequence[EventFacts]) -> list[OpenCall]:
    found: dict[str, OpenCall] = {}
    for at, event in enumerate(events):
        for answer in event.answers:
            # The tool of a long-running call only says that it began: the answer comes from outside.
            if answer in found and (event.author == USER or not found[answer].call.long_running):
                del found[answer]
        # An id may come again: some models number their calls anew each turn, and a node that starts over
        # repeats its own.
        found |= {call.id: OpenCall(at=at, call=call) for call in event.calls}
        if event.end_of_agent:
            # A parallel agent cancels its other branches when one of them escalates.
            found = {key: it for key, it in found.items() if not _below(it.call.branch, event.branch)}
    return list(found.values())


def has_returned(call: Call, history: History) -> bool:
    """Whether the tool of a long-running call did its part: only the answer from outside is missing.

    A tool that was killed, or never begun, started nothing that could answer. Without a journal that cannot be
    told from a tool that returned nothing, and is believed to be one.
    """
    if call.gate or history.journal is None or any(call.id in event.answers for event in history.events):
        return True
    row = row_of(call, history.journal)
    return row is not None and row.state is not CallState.BEGUN


def row_of(call: Call, journal: Sequence[CallFacts]) -> CallFacts | None:
    """Find a call's row in the journal: under its id, its id and event, or a key of its tool's own."""
    keys = {call.id, f"{call.id}@{call.event_id}"}
    rows = (
        row
        for row in journal
        if row.key in keys or (row.id == call.id and row.key.startswith(EFFECT_KEY_PREFIX))
    )
    return next(rows, None)


def unanswered_rows(history: History) -> list[CallFacts]:
    """Give the journaled calls without a stored answer.

    Those inside an agent that runs as a tool have no event at all; of one that a person had to confirm first, the
    answer that asked for it is stored.
    """
    journal, events = history.journal or (), history.events
    waiting = (
        row_of(it.call, journal)
        for it in history.open
        if not any(it.call.id in event.answers for event in events[it.at :])
    )
    keys = {row.key for row in waiting if row is not None}
    issued = {call.id for event in events for call in event.calls}
    gated = {answer for event in events for answer in event.gated}
    answered = {answer for event in events for answer in event.answers if answer not in event.gated}
    return [row for row in journal if row.key in keys or row.id not in issued or row.id in gated - answered]


def is_passed_over(open_call: OpenCall, events: Sequence[EventFacts]) -> bool:
    """Whether a resume would not run a call: ADK runs only what comes last in its agent's view."""
    call, calls = open_call.call, events[open_call.at].calls
    if call.long_running:
        return True  # ADK pauses on it.
    if any(event.scope == call.id for event in events):
        return False  # A task agent works on it. Its caller comes back, whatever was stored meanwhile.
    if any(event.nodes and event.branch == call.branch for event in events[: open_call.at]):
        return True  # A workflow stores its state anew at a resume; only sometimes its node is faster.
    issued = {it.id for event in events if _within(event.branch, call.branch) for it in event.calls}
    gates = {it.id for event in events for it in event.calls if it.gate}
    # ADK runs the calls that are left when others of the same event are answered from outside, unless it pauses
    # on one of them; and a call whose gate is answered.
    harmless = gates if any(it.long_running for it in calls) else gates | {it.id for it in calls}
    for event in events[open_call.at + 1 :]:
        if event.author != USER:
            if event.branch == call.branch and not (
                event.calls and gates.issuperset(it.id for it in event.calls)
            ):
                return True
        elif not event.answers:
            if not event.branch or _within(event.branch, call.branch):
                return True
        elif (
            issued.intersection(event.answers)  # Answers to other branches are out of its sight,
            and call.id not in _run_ids(event.branch)  # those inside its own tool are for that tool.
            and not harmless.issuperset(event.answers)
        ):
            return True
    return False


def _last(events: Sequence[EventFacts], matches: Callable[[EventFacts], bool]) -> int:
    return next((at for at in reversed(range(len(events))) if matches(events[at])), -1)


def _within(branch: str, ancestor: str) -> bool:
    return branch == ancestor or _below(branch, ancestor)


def _below(branch: str, ancestor: str) -> bool:
    return branch.startswith(f"{ancestor}.") if ancestor else bool(branch)


def _run_ids(branch: str) -> set[str]:
    """A branch is a path ``name@run.name@run``; the run of a call's own branch is the call's id."""
    return {segment.rpartition("@")[2] for segment in branch.split(".")}
