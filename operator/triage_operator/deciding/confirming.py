"""A process that was presumed dead is known to be once its node says so: then what did not happen never will."""

from typing import Final

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Outcome, RunState
from triage_operator.actions import ConfirmDeath
from triage_operator.diagnosing import diagnose
from triage_operator.reasons import Reason
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot

_LEFT_NOTHING: Final = frozenset({Outcome.FINISHED, Outcome.HANDED_OFF})
"""How an attempt ends only when no call of it runs."""


def confirm_death(snapshot: Snapshot, settings: DecidingSettings) -> ConfirmDeath | None:
    """Take note of the first death that is certain by now."""
    if snapshot.row is None or snapshot.row.state is not RunState.ACTIVE:
        return None
    for attempt in snapshot.attempts:
        if (
            attempt.ended_at is not None
            and attempt.confirmed_at is None
            and attempt.outcome not in _LEFT_NOTHING
            and (is_death_seen(snapshot, attempt) or attempt.node in snapshot.dead_nodes)
        ):
            return ConfirmDeath(
                reason=Reason.LOST,
                message=f"The process of attempt {attempt.epoch} is dead.",
                serial=attempt.serial,
                epoch=attempt.epoch,
            )
    return None


def is_death_seen(snapshot: Snapshot, attempt: AttemptRow) -> bool:
    """Say whether the attempt's pod tells, or told when it went, how the agent container itself ended."""
    pod = snapshot.pod_of(attempt) or snapshot.last_pods.get(attempt.epoch)
    return pod is not None and diagnose(pod).confirmed
