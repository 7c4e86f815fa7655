"""``rollout``: a changed agent reaches a run by its next attempt, which an outdated one is asked to make room for."""

from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome
from triage_operator.actions import EndAttempt, RequestHandoff, Wait
from triage_operator.deciding.agent import wait_for_agent
from triage_operator.deciding.ending import end
from triage_operator.deciding.giving_up import give_up
from triage_operator.diagnosing import diagnose
from triage_operator.phases import standing_phase
from triage_operator.reasons import Reason
from triage_operator.revision import is_outdated, is_to_restart
from triage_operator.settings import DecidingSettings
from triage_operator.snapshot import Snapshot


def remake(snapshot: Snapshot, settings: DecidingSettings) -> EndAttempt | None:
    """End an outdated attempt whose pod cannot start, whatever the strategy: nothing of it is under way."""
    attempt, agent = snapshot.open_attempt, snapshot.agent
    pod = None if attempt is None else snapshot.pod_of(attempt)
    if attempt is None or agent is None or pod is None or attempt.claimed_at is not None:
        return None
    if diagnose(pod).held_up is None or not is_outdated(attempt, pod, agent):
        return None
    if not _has_successor(snapshot, settings):
        return None
    return end(
        attempt,
        outcome=Outcome.HANDED_OFF,
        cause=Cause.ROLLOUT,
        reason=Reason.HANDED_OFF,
        message=f"The agent has changed, and the pod of attempt {attempt.epoch} had not started.",
    )


def roll_out(snapshot: Snapshot, settings: DecidingSettings) -> RequestHandoff | None:
    """Ask an outdated attempt at work to hand off, once, if there is a place for it."""
    agent, attempt = snapshot.agent, _to_replace(snapshot, settings)
    if agent is None or attempt is None:
        return None
    places = agent.spec.rollout.max_unavailable
    if len(snapshot.handovers.coming) >= places:
        return None
    return RequestHandoff(
        reason=Reason.HANDING_OFF,
        message=f"The agent has changed since attempt {attempt.epoch} was made: the attempt is to hand off.",
        serial=attempt.serial,
        cause=Cause.ROLLOUT,
        max_unavailable=places,
    )


def await_turn(snapshot: Snapshot, settings: DecidingSettings) -> Wait | None:
    """Let an outdated attempt work on until there is a place for it. Whoever leaves one wakes the runs that wait."""
    attempt = _to_replace(snapshot, settings)
    if attempt is None:
        return None
    first = min(snapshot.handovers.coming, default="others")
    return Wait(
        reason=Reason.OUTDATED,
        message=f"Attempt {attempt.epoch} is at work, as the agent was; it is replaced once {first} goes on.",
        phase=standing_phase(snapshot),
        until=None,
    )


def _to_replace(snapshot: Snapshot, settings: DecidingSettings) -> AttemptRow | None:
    """Give the open attempt if the rollout is to replace it, sooner or later."""
    attempt, agent = snapshot.open_attempt, snapshot.agent
    pod = None if attempt is None else snapshot.pod_of(attempt)
    if attempt is None or agent is None or pod is None or not is_to_restart(attempt, pod, agent):
        return None
    return attempt if _has_successor(snapshot, settings) else None


def _has_successor(snapshot: Snapshot, settings: DecidingSettings) -> bool:
    """Say whether another attempt would follow: its agent can be used, and its budget is not used up."""
    return wait_for_agent(snapshot, settings) is None and give_up(snapshot, settings) is None
