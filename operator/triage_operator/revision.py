"""The revision of an agent: what tells a pod that was made of it as it is now from one that was made before. Pure."""

import hashlib
import json
from typing import Final

from triage_contract.api import TriageAgent
from triage_contract.database.rows import AttemptRow
from triage_contract.names import Label
from triage_contract.states import RolloutStrategy
from triage_operator.diagnosing import PodState, diagnose
from triage_operator.snapshot import Pod

_OF_SPEC: Final = {
    "image",
    "app",
    "model",
    "database",
    "tracker",
    "docs",
    "tools",
    "resources",
    "pod_template",
}
_OF_RESUME: Final = {"in_doubt"}
"""Fields of an agent that its pods are made of. What the operator adds by itself is left out, so that another release
of it makes no pod outdated; so is a raised memory limit, which is the attempt's."""


def revision_of(agent: TriageAgent) -> str:
    """Give ten hex digits, the same for as long as the agent gives its pods the same.

    A field at its default counts as absent: one that a later release adds changes nothing.
    """
    given = agent.spec.model_dump(mode="json", include=_OF_SPEC, exclude_defaults=True)
    given |= agent.spec.resume.model_dump(mode="json", include=_OF_RESUME, exclude_defaults=True)
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:10]


def is_outdated(attempt: AttemptRow, pod: Pod, agent: TriageAgent) -> bool:
    """Say whether the agent would make another pod for the attempt now."""
    revision = (pod["metadata"].get("labels") or {}).get(Label.REVISION)
    if revision is None:
        # Made by a release that did not say. The row has the image as it was asked for; in a pod a webhook may have
        # put another.
        return attempt.image != agent.spec.image
    return bool(revision != revision_of(agent))


def is_to_restart(attempt: AttemptRow, pod: Pod, agent: TriageAgent) -> bool:
    """Say whether an attempt at work is to hand off so that its successor is as the agent is now."""
    return (
        agent.spec.rollout.strategy is RolloutStrategy.RESTART
        and attempt.claimed_at is not None
        and attempt.handoff_requested_at is None
        and diagnose(pod).state is PodState.RUNNING
        and is_outdated(attempt, pod, agent)
    )
