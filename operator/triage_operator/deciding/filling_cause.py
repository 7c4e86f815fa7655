"""A lost attempt's cause is filled in, or corrected, once its pod says more than was known when it was lost."""

from typing import Final

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome
from triage_operator.actions import FillCause
from triage_operator.budgeting import counts
from triage_operator.deciding.confirming import is_death_seen
from triage_operator.deciding.ending import fitting_cause
from triage_operator.deciding.releasing import DISRUPTIONS
from triage_operator.diagnosing import PodState, cause_of_absence, diagnose
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

_GUESSES: Final = frozenset({Cause.VANISHED, Cause.SIGTERM})
"""Causes that say only what the attempt's own row showed."""


def fill_cause(snapshot: Snapshot, settings: DecidingSettings) -> FillCause | None:
    """Fill in the first cause that can be."""
    fillings = (_filling(snapshot, attempt) for attempt in snapshot.attempts)
    return next((filling for filling in fillings if filling is not None), None)


def _filling(snapshot: Snapshot, attempt: AttemptRow) -> FillCause | None:
    if attempt.exit_code is not None:
        return None
    if attempt.outcome is Outcome.LOST and attempt.cause is None:
        cause, exit_code = _cause_of_unknown(snapshot, attempt)
    elif attempt.cause in _GUESSES:
        cause, exit_code = _better_cause(snapshot, attempt)
    else:
        return None
    cause = fitting_cause(attempt, cause)
    if cause is None:
        return None
    return FillCause(
        reason=Reason.LOST,
        message=f"Attempt {attempt.epoch} was lost to {cause}.",
        serial=attempt.serial,
        epoch=attempt.epoch,
        cause=cause,
        counted=counts(cause, attempt, snapshot.agent),
        exit_code=exit_code,
        confirmed=is_death_seen(snapshot, attempt),
    )


def _cause_of_unknown(snapshot: Snapshot, attempt: AttemptRow) -> tuple[Cause | None, int | None]:
    """Give the cause of a loss that only signs of life told.

    A deletion came after it, from this operator or from others, and does not explain it.
    """
    pod = snapshot.pod_of(attempt)
    if pod is None:
        cause = _cause_from_last(snapshot, attempt)
        return Cause.VANISHED if cause in (None, Cause.DELETED) else cause, None
    diagnosis = diagnose(pod)
    if diagnosis.state is not PodState.ENDED:
        return None, None
    if diagnosis.cause in (None, Cause.DELETED):
        # A process that left when it found itself fenced, or was ended with its pod, had been alive, and silent.
        return Cause.UNRESPONSIVE, diagnosis.exit_code
    return diagnosis.cause, diagnosis.exit_code


def _better_cause(snapshot: Snapshot, attempt: AttemptRow) -> tuple[Cause | None, int | None]:
    pod = snapshot.pod_of(attempt)
    if pod is None:
        cause, exit_code = _cause_from_last(snapshot, attempt), None
    else:
        diagnosis = diagnose(pod)
        cause = diagnosis.cause if diagnosis.state is PodState.ENDED else None
        exit_code = diagnosis.exit_code
    if attempt.outcome is Outcome.HANDED_OFF and cause not in DISRUPTIONS:
        # How the process ended after it had handed off does not matter.
        return None, None
    return (None, None) if cause in (attempt.cause, Cause.SIGTERM) else (cause, exit_code)


def _cause_from_last(snapshot: Snapshot, attempt: AttemptRow) -> Cause | None:
    last = snapshot.last_pods.get(attempt.epoch)
    return None if last is None else cause_of_absence(last)
