"""The rules of resume: from stored facts alone to what has to be done about an invocation.

The operator asks before it starts a pod, the agent after its claim; both ask this function.

| verdict | to do |
|---|---|
| not started | start |
| interrupted | resume |
| wedged | append an answer by the user to each of ``calls``, on its branch and scope; then resume |
| in doubt | settle ``doubts`` before ADK is entered: ask, wait for a person, or fail |
| waiting | nothing, until answers to ``calls`` come from outside |
| finished | complete, without asking the model |
| failed | back off and resume; where ``sealed``, a resume does nothing |
| aborted | nothing, ever |
| unknown | refuse |
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from triage_contract.states import InDoubt, Verdict
from triage_contract.verdict.doubts import DoubtfulCall, Remedy, remedy_for
from triage_contract.verdict.facts import (
    NODE_WAITING,
    USER,
    Call,
    CallFacts,
    EventFacts,
    RootKind,
    RunFacts,
)
from triage_contract.verdict.history import (
    SHELLS,
    History,
    gather,
    has_returned,
    is_passed_over,
    unanswered_rows,
)

ABORTED: Final = "INVOCATION_ABORTED"
"""Error code with which ADK seals an invocation that its user cancelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict, and what it rests on.

    ``why`` is a sentence with names of agents and tools. ``calls`` have no answer and decide the verdict, or in doubt
    ``doubts`` do, which may have no event, such as those inside an agent that runs as a tool;
    ``lost`` are further ones that nobody works on while an invocation waits. ``text`` is the last word of an
    agent. ``marked``: finished, and the end marker says so, too. ``sealed``: failed, and ADK does nothing on a
    resume. The error is ADK's own text: bound it before it is shown.
    """

    verdict: Verdict
    why: str
    calls: tuple[Call, ...] = ()
    doubts: tuple[DoubtfulCall, ...] = ()
    lost: tuple[Call, ...] = ()
    text: str | None = None
    marked: bool = False
    sealed: bool = False
    error_code: str | None = None
    error_message: str | None = None


def verdict(
    events: Sequence[EventFacts], run: RunFacts | None, journal: Sequence[CallFacts] | None
) -> Judgement:
    """Judge an invocation.

    Args:
        events: its events in the order of (timestamp, id).
        run: our row of the run. None: there is none.
        journal: its journaled calls. None: no journal is kept.
    """
    history = gather(events, run, journal)
    for rule in _RULES:
        if (judgement := rule(history)) is not None:
            return judgement
    return Judgement(
        verdict=Verdict.INTERRUPTED, why="The events end before the agent had finished.", text=history.text
    )


def _nothing_stored(history: History) -> Judgement | None:
    if history.events:
        return None
    if history.run is None:
        return Judgement(
            verdict=Verdict.UNKNOWN, why="There is neither a run nor an event of this invocation."
        )
    if history.journal:
        return Judgement(
            verdict=Verdict.UNKNOWN, why="Calls of this invocation are journaled, but its events are gone."
        )
    return Judgement(verdict=Verdict.NOT_STARTED, why="The run has no event.")


def _aborted(history: History) -> Judgement | None:
    if any(event.error_code == ABORTED for event in history.events):
        return Judgement(verdict=Verdict.ABORTED, why="The invocation was aborted by its user.")
    return None


def _in_doubt(history: History) -> Judgement | None:
    policy = history.run.in_doubt if history.run is not None else InDoubt.PARK
    doubts = tuple(
        DoubtfulCall(key=row.key, id=row.id, name=row.name, epoch=row.epoch, remedy=remedy)
        for row in unanswered_rows(history)
        if (remedy := remedy_for(row, policy)) not in (None, Remedy.RUN_AGAIN)
    )
    if not doubts:
        return None
    names = ", ".join(dict.fromkeys(doubt.name for doubt in doubts))
    return Judgement(
        verdict=Verdict.IN_DOUBT, why=f"Begun, and not known to have happened: {names}.", doubts=doubts
    )


def _beyond_repair(history: History) -> Judgement | None:
    """A resume went past a call, and its agent ended without it: what runs it next starts over, if anything does."""
    root, events = history.root, history.events
    if root is None or root.kind not in SHELLS:
        return None
    calls = tuple(
        it.call
        for it in history.open
        if any(event.end_of_agent and event.author == events[it.at].author for event in events[it.at :])
        or history.ended > it.at
    )
    in_vain = history.ended >= 0 and any(
        event.author == USER and event.answers for event in events[history.ended :]
    )
    if not calls and not in_vain:
        return None
    return Judgement(
        verdict=Verdict.FAILED,
        why="An agent ended without waiting for the answer to a call.",
        calls=calls,
        sealed=True,
    )


def _waiting_for_answers(history: History) -> Judgement | None:
    calls = [it.call for it in history.open if it.call.long_running and has_returned(it.call, history)]
    lost = tuple(it.call for it in history.open if it.call not in calls)
    return _about(calls, Verdict.WAITING, "Waiting for an answer", lost)


def _waiting_for_words(history: History) -> Judgement | None:
    """A task agent that says something asks its user, and its node waits; no call carries an id to answer."""
    last = history.last
    if last is not None and last.scope and last.final and last.author != USER and not last.answers:
        return Judgement(
            verdict=Verdict.WAITING, why=f"Task agent {last.author} asks its user.", text=last.text
        )
    if NODE_WAITING in history.nodes and history.state > history.said:
        return Judgement(verdict=Verdict.WAITING, why="A node of the workflow waits for its user.")
    return None


def _wedged(history: History) -> Judgement | None:
    calls = (it.call for it in history.open if is_passed_over(it, history.events))
    return _about(calls, Verdict.WEDGED, "A resume would not run these calls")


def _call_open(history: History) -> Judgement | None:
    return _about((it.call for it in history.open), Verdict.INTERRUPTED, "Without a stored result")


def _ended(history: History) -> Judgement | None:
    if history.ended < max(history.said, history.transferred, 0):
        return None
    if history.last is not None and history.last.failed:
        root = history.root
        return _failure(history.last, sealed=root is not None and root.kind is not RootKind.LLM)
    return Judgement(
        verdict=Verdict.FINISHED, why="The end marker is stored.", text=history.text, marked=True
    )


def _said_the_last_word(history: History) -> Judgement | None:
    """The run is over, only its marker is missing: a resume would ask the model for a second answer.

    The nodes of a workflow speak in its name, and of a custom agent nobody knows which word is the last.
    """
    last, root = history.last, history.root
    if last is None or root is None or root.kind in (RootKind.WORKFLOW, RootKind.CUSTOM):
        return None
    if not last.final or last.author != history.owner:
        return None
    why = "The last word is stored; its end marker is missing."
    return Judgement(verdict=Verdict.FINISHED, why=why, text=history.text)


def _trailing_error(history: History) -> Judgement | None:
    trail = next((event for event in reversed(history.events) if not event.end_of_agent), None)
    return _failure(trail, sealed=False) if trail is not None and trail.failed else None


_RULES: Final[tuple[Callable[[History], Judgement | None], ...]] = (
    _nothing_stored,
    _aborted,
    # Before the events: a tool that was killed may look as if it waited.
    _in_doubt,
    # Before waiting: nobody should be asked for an answer that does nothing.
    _beyond_repair,
    # Before any resume: ADK goes on past what waits.
    _waiting_for_answers,
    # Before the end, too: a workflow writes its marker although a node waits.
    _waiting_for_words,
    # Before the end: the marker is no proof of success where a call was passed over.
    _wedged,
    _call_open,
    _ended,
    _said_the_last_word,
    _trailing_error,
)


def _about(
    calls: Iterable[Call], verdict: Verdict, what: str, lost: tuple[Call, ...] = ()
) -> Judgement | None:
    calls = tuple(calls)
    if not calls:
        return None
    names = ", ".join(dict.fromkeys(call.name for call in calls))
    return Judgement(verdict=verdict, why=f"{what}: {names}.", calls=calls, lost=lost)


def _failure(event: EventFacts, *, sealed: bool) -> Judgement:
    return Judgement(
        verdict=Verdict.FAILED,
        why=f"Agent {event.author} ended in an error.",
        sealed=sealed,
        error_code=event.error_code,
        error_message=event.error_message,
    )
