"""An agent that has changed while attempts of it are at work, or cannot start."""

from typing import Any

from support.builders import (
    Scenario,
    a_run,
    a_triage_agent,
    an_attempt,
    at_work,
    lost,
    podless,
    released,
    table,
    unclaimed,
)
from support.clock import ago
from support.pods import PodBuilder, a_pod
from triage_contract.states import Cause, Outcome
from triage_operator.revision import revision_of
from triage_operator.snapshot import Handovers

RESTART = {"strategy": "Restart"}
ANOTHER: dict[str, Any] = {"image": "docs-triage:2", "rollout": RESTART}
CHANGED = a_triage_agent(**ANOTHER)


def _made() -> PodBuilder:
    """A pod that was made of the agent as it was."""
    return a_pod().of_revision(revision_of(a_triage_agent()))


def _changed(scenario: Scenario, **spec: Any) -> Scenario:
    """Have the agent get another image, and replace what is at work."""
    return scenario.of_agent(**{**ANOTHER, **spec})


def _running(**attempt: Any) -> Scenario:
    return a_run().attempted(an_attempt(**attempt)).with_pod(_made().running())


def _between(*names: str, resting: tuple[str, ...] = ()) -> dict[str, Handovers]:
    return {"handovers": Handovers(coming=frozenset(names), resting=frozenset(resting))}


BLOCKED = a_run().attempted(unclaimed()).with_pod(_made().scheduled(ago(4)).waiting("ImagePullBackOff"))


@table(
    ("an attempt of the agent as it was hands off", _changed(_running()), "RequestHandoff 101 rollout"),
    (
        "one of the agent as it is stays",
        _changed(_running()).with_pod(a_pod().running().of_revision(revision_of(CHANGED))),
        "Wait Running Running",
    ),
    (
        "by default it goes on as it was made",
        _changed(_running(), rollout={}),
        "Wait Running Running",
    ),
    (
        "another setting counts as well as another image",
        _changed(_running(), image="docs-triage:1", tools={"deploy": "ReadOnly"}),
        "RequestHandoff 101 rollout",
    ),
    (
        "how runs are resumed is no matter of the pod",
        _changed(_running(), image="docs-triage:1", resume={"maxNoProgress": 9}),
        "Wait Running Running",
    ),
    (
        "of a pod that does not say what it was made of the image alone counts",
        _changed(at_work(), image="docs-triage:1", tools={"deploy": "ReadOnly"}),
        "Wait Running Running",
    ),
    ("and so does another one", _changed(at_work()), "RequestHandoff 101 rollout"),
    (
        "an attempt is asked once",
        _changed(_running(handoff_requested_at=ago(1), handoff_reason="rollout")),
        "Wait Running HandingOff",
    ),
    (
        "one that is to hand off for another reason is not asked again",
        _changed(_running(handoff_requested_at=ago(1), handoff_reason="suspended")),
        "Wait Running HandingOff",
    ),
    (
        "one that leaves anyway is not asked",
        _changed(_running()).with_pod(_made().running().evicted()),
        "Wait Running HandingOff until +32",
    ),
    (
        "one that has not begun is asked once it has",
        _changed(a_run().attempted(unclaimed()).with_pod(_made().running(ago(5)))),
        "Wait Pending Pending until +115",
    ),
    (
        "one by hand is left alone",
        _changed(a_run().attempted(an_attempt(pod=None, pod_uid=None))),
        "Wait Running ByHand",
    ),
    (
        "its turn comes when a place is free",
        _changed(_running()).where(**_between("other")),
        "Wait Running Outdated",
    ),
    (
        "there are as many places as the agent says",
        _changed(_running(), rollout={**RESTART, "maxUnavailable": 3}).where(**_between("other", "another")),
        "RequestHandoff 101 rollout",
    ),
    (
        "and no more",
        _changed(_running(), rollout={**RESTART, "maxUnavailable": 2}).where(**_between("other", "another")),
        "Wait Running Outdated",
    ),
    (
        "a run that waits for a person takes none",
        _changed(_running()).where(**_between(resting=("suspended",))),
        "RequestHandoff 101 rollout",
    ),
    (
        "an attempt does not make room for one that could not follow: its agent is of no use",
        _changed(_running(), podTemplate={"spec": {"restartPolicy": "Always"}}),
        "Wait Running Running",
    ),
    (
        "or all attempts are used up",
        _changed(_running(), resume={"maxAttempts": 1}),
        "Wait Running Running",
    ),
    (
        "or nothing is ever resumed",
        _changed(_running(), resume={"maxNoProgress": 0}),
        "Wait Running Running",
    ),
    (
        "or there is no agent any more",
        _running().without_agent(),
        "Wait Running Running",
    ),
    (
        "a suspended run hands off for that",
        _changed(_running()).asking(suspend=True),
        "RequestHandoff 101 suspended",
    ),
    (
        "one that is to be cancelled does not hand off",
        _changed(_running()).asking(cancel=True),
        "EndAttempt 101 cancelled - Cancelled",
    ),
)
def test_rollout_asks_outdated_attempts_in_turn(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


@table(
    (
        "it has handed off for the rollout, which is not held against the run",
        _changed(a_run().attempted(released(Outcome.HANDED_OFF, handoff_reason="rollout"))),
        "EndAttempt 101 handed_off rollout HandedOff",
    ),
    (
        "whatever its pod was told since",
        _changed(
            a_run()
            .attempted(released(Outcome.HANDED_OFF, handoff_reason="rollout"))
            .with_pod(_made().running().evicted())
        ),
        "EndAttempt 101 handed_off rollout HandedOff",
    ),
    (
        "its successor follows at once",
        _changed(
            a_run().attempted(
                an_attempt(outcome=Outcome.HANDED_OFF, cause=Cause.ROLLOUT, counted=False, ended_at=ago(0))
            )
        ),
        "OpenAttempt after 1 Resuming 256Mi",
    ),
    (
        "one that was asked and is killed is lost to that, and hands nothing off",
        _changed(
            a_run()
            .attempted(an_attempt(handoff_requested_at=ago(1), handoff_reason="rollout"))
            .with_pod(_made().exited(137))
        ),
        "EndAttempt 101 lost sigkill Lost exit 137 counted",
    ),
)
def test_attempt_that_was_asked_ends(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


@table(
    (
        "an attempt that cannot start is made anew",
        _changed(BLOCKED),
        "EndAttempt 101 handed_off rollout HandedOff",
    ),
    (
        "whatever the strategy",
        _changed(BLOCKED, rollout={}),
        "EndAttempt 101 handed_off rollout HandedOff",
    ),
    (
        "whoever else is between two attempts",
        _changed(BLOCKED).where(**_between("other")),
        "EndAttempt 101 handed_off rollout HandedOff",
    ),
    (
        "for want of a node too",
        _changed(a_run().attempted(unclaimed()).with_pod(_made().unschedulable()), resources={}),
        "EndAttempt 101 handed_off rollout HandedOff",
    ),
    (
        "also where nothing is ever resumed: it has not begun",
        _changed(BLOCKED, resume={"maxNoProgress": 0}),
        "EndAttempt 101 handed_off rollout HandedOff",
    ),
    ("not if the agent is as it was", BLOCKED, "Wait Pending StartBlocked until +296"),
    (
        "not if it is about to start",
        _changed(a_run().attempted(unclaimed()).with_pod(_made().scheduled(ago(4)).waiting())),
        "Wait Pending Pending until +296",
    ),
    (
        "not if the agent is of no use now",
        _changed(BLOCKED, podTemplate={"spec": {"restartPolicy": "Always"}}),
        "Wait Pending StartBlocked until +296",
    ),
    (
        "not if it is the last attempt",
        _changed(BLOCKED, resume={"maxAttempts": 1}),
        "Wait Pending StartBlocked until +296",
    ),
    (
        "one that has no pod yet gets it as the agent is now",
        _changed(a_run().attempted(lost(Cause.SIGKILL), podless())),
        "CreatePod 102 Starting",
    ),
)
def test_attempt_that_cannot_start_is_made_anew(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected
