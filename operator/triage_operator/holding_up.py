"""The status of an object about which nothing can be decided: what is in the way, and else what stood there."""

from datetime import datetime
from typing import Any

from triage_contract.api import RunCondition
from triage_contract.api.run import MAX_MESSAGE_LENGTH
from triage_contract.states import Phase
from triage_operator.kube import Object
from triage_operator.reasons import Reason


def held_up(run: Object, *, reason: Reason, message: str, now: datetime) -> dict[str, Any]:
    """Give the status of a run, as JSON, that says what holds it up."""
    status = with_false_condition(run, kind=RunCondition.PROGRESSING, reason=reason, message=message, now=now)
    return {**status, "phase": status.get("phase") or Phase.PENDING.value}


def with_false_condition(
    thing: Object, *, kind: str, reason: Reason, message: str, now: datetime
) -> dict[str, Any]:
    """Give an object's status, as JSON, with one condition false.

    Where it was false before for the same reason, the status stays equal, whatever ``now`` is.
    """
    status = dict(thing.get("status") or {})
    standing = {one["type"]: one for one in status.get("conditions", ())}
    before = standing.get(kind, {})
    since = before["lastTransitionTime"] if before.get("status") == "False" else f"{now:%Y-%m-%dT%H:%M:%SZ}"
    standing[kind] = {
        "type": str(kind),
        "status": "False",
        "reason": reason.value,
        "message": message[:MAX_MESSAGE_LENGTH],
        "lastTransitionTime": since,
        "observedGeneration": thing["metadata"].get("generation", 0),
    }
    return {**status, "conditions": list(standing.values())}
