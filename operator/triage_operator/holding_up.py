"""The status of a run about which nothing can be decided: what is in the way, and else what stood there before."""

from datetime import datetime
from typing import Any

from triage_contract.api import RunCondition
from triage_contract.states import Phase
from triage_operator.kube import Object
from triage_operator.reasons import Reason


def held_up(run: Object, *, reason: Reason, message: str, now: datetime) -> dict[str, Any]:
    """Give the status of a run, as JSON, that says what holds it up.

    Equal input but for ``now`` gives an equal status, once it is written.
    """
    status = dict(run.get("status") or {})
    before = [one for one in status.get("conditions", ()) if one["type"] == RunCondition.PROGRESSING]
    others = [one for one in status.get("conditions", ()) if one["type"] != RunCondition.PROGRESSING]
    stands = bool(before) and before[0]["status"] == "False"
    condition = {
        "type": RunCondition.PROGRESSING.value,
        "status": "False",
        "reason": reason.value,
        "message": message[:1024],
        "lastTransitionTime": before[0]["lastTransitionTime"] if stands else f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "observedGeneration": run["metadata"].get("generation", 0),
    }
    return {**status, "phase": status.get("phase") or Phase.PENDING, "conditions": [*others, condition]}
