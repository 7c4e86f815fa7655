"""A run is given up once its attempts leave nothing new, or there were too many of them."""

from datetime import datetime, timedelta

from triage_contract.database.rows import AttemptRow
from triage_contract.states import CallState, Outcome, Phase, Verdict
from triage_operator.actions import Action, Wait
from triage_operator.budgeting import no_progress
from triage_operator.deciding.ending import fail
from triage_operator.deciding.refusing import ERROR_LENGTH
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def give_up(snapshot: Snapshot, settings: DecidingSettings) -> Action | None:
    """Fail a run whose budget is used up."""
    newest, agent = snapshot.newest, snapshot.agent
    if newest is None or agent is None:
        return None
    resume, made = agent.spec.resume, len(snapshot.attempts)
    if made >= resume.max_attempts:
        message = f"All {made} attempts of resume.maxAttempts are used up; {_last(snapshot, newest)}"
        return fail(Reason.TOO_MANY_ATTEMPTS, message)
    fruitless = no_progress(snapshot.attempts)
    if resume.max_no_progress == 0 and any(attempt.claimed_at for attempt in snapshot.attempts):
        message = f"resume.maxNoProgress is 0, so nothing is resumed; {_last(snapshot, newest)}"
    elif fruitless > 0 and resume.max_no_progress <= fruitless:
        message = f"Attempts in a row that left nothing new: {fruitless}; {_last(snapshot, newest)}"
    else:
        return None
    word_at = _word_at(snapshot, settings)
    if word_at is not None and snapshot.now < word_at:
        waiting = "The budget is used up, unless the cause of a loss turns out not to count."
        return Wait(reason=Reason.LOST, message=waiting, phase=Phase.RECOVERING, until=word_at)
    failed = snapshot.judgement is not None and snapshot.judgement.verdict is Verdict.FAILED
    return fail(Reason.MODEL_ERROR if failed else Reason.NO_PROGRESS, message)


def _word_at(snapshot: Snapshot, settings: DecidingSettings) -> datetime | None:
    """Give until when the cause of a loss may still become known; None: all are known."""
    unknown = (
        attempt.ended_at
        for attempt in snapshot.attempts
        if attempt.outcome is Outcome.LOST and attempt.cause is None and attempt.exit_code is None
    )
    newest = max((ended_at for ended_at in unknown if ended_at is not None), default=None)
    return None if newest is None else newest + timedelta(seconds=settings.last_word_seconds)


def _last(snapshot: Snapshot, newest: AttemptRow) -> str:
    """Say how the last attempt ended, and in which tool calls."""
    judgement = snapshot.judgement
    calls = {} if judgement is None else {call.name: call.name for call in judgement.calls}
    calls |= {
        call.tool: f"{call.tool}, begun {call.begun_times} times"
        for call in snapshot.journal
        if call.state == CallState.BEGUN and call.begun_times > 1
    }
    within = f" in {', '.join(calls.values())}" if calls else ""
    error = (judgement.error_message if judgement is not None else None) or newest.error
    said = f": {' '.join(error.split())[:ERROR_LENGTH]}" if error else "."
    return f"the last one ended with {newest.cause or newest.outcome or 'an unknown cause'}{within}{said}"
