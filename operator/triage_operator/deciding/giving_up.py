"""A run is given up once its attempts leave nothing new, or there were too many of them."""

from datetime import timedelta

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Outcome, Phase, RunState, Verdict
from triage_operator.actions import Action, EndRun, Wait
from triage_operator.budgeting import no_progress
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

_ERROR_LENGTH = 300


def give_up(snapshot: Snapshot, settings: DecidingSettings) -> Action | None:
    """Fail a run whose budget is used up."""
    newest, agent = snapshot.newest, snapshot.agent
    if newest is None or agent is None:
        return None
    resume, made = agent.spec.resume, len(snapshot.attempts)
    if made >= resume.max_attempts:
        message = f"All {made} attempts of resume.maxAttempts are used up; {_last(snapshot, newest)}"
        return _fail(Reason.TOO_MANY_ATTEMPTS, message)
    fruitless = no_progress(snapshot.attempts)
    if resume.max_no_progress == 0 and any(attempt.claimed_at for attempt in snapshot.attempts):
        message = f"resume.maxNoProgress is 0, so nothing is resumed; {_last(snapshot, newest)}"
    elif fruitless > 0 and resume.max_no_progress <= fruitless:
        message = f"Attempts in a row that left nothing new: {fruitless}; {_last(snapshot, newest)}"
    else:
        return None
    if newest.outcome is Outcome.LOST and newest.cause is None and newest.exit_code is None:
        # A cause that does not count would save the run, and this end is for good.
        word_at = (newest.ended_at or snapshot.now) + timedelta(seconds=settings.last_word_seconds)
        if snapshot.now < word_at:
            waiting = f"Attempt {newest.epoch} was lost; the cause is not known yet."
            return Wait(reason=Reason.LOST, message=waiting, phase=Phase.RECOVERING, until=word_at)
    failed = snapshot.judgement is not None and snapshot.judgement.verdict is Verdict.FAILED
    return _fail(Reason.MODEL_ERROR if failed else Reason.NO_PROGRESS, message)


def _fail(reason: Reason, message: str) -> EndRun:
    return EndRun(reason=reason, message=message, state=RunState.FAILED, output=None)


def _last(snapshot: Snapshot, newest: AttemptRow) -> str:
    """Say how the last attempt ended, and in which tool calls."""
    judgement = snapshot.judgement
    calls = () if judgement is None else dict.fromkeys(call.name for call in judgement.calls)
    within = f" in {', '.join(calls)}" if calls else ""
    error = (judgement.error_message if judgement is not None else None) or newest.error
    said = f": {' '.join(error.split())[:_ERROR_LENGTH]}" if error else "."
    return f"the last one ended with {newest.cause or newest.outcome or 'an unknown cause'}{within}{said}"
