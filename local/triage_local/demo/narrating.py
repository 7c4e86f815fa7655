"""What a change of a TriageRun tells a person."""

from collections.abc import Iterator
from typing import Any, Final

Json = dict[str, Any]

_MESSAGE_CHARACTERS: Final = 62


def told(before: Json | None, after: Json) -> Iterator[str]:
    """Say what the status of a run shows that it did not show before.

    Args:
        before: The object as it was seen last; None: never.
        after: The object as it is.
    """
    was, now = _status(before), _status(after)
    known = {attempt["epoch"]: attempt for attempt in was.get("attempts", [])}
    for attempt in now.get("attempts", []):
        yield from _told_of_attempt(known.get(attempt["epoch"], {}), attempt)
    if now.get("waitingFor") and not was.get("waitingFor"):
        for call in now["waitingFor"]:
            yield f"asks about a call of {call['tool']} in attempt {call.get('attempt')}: {call['why']}"
    if now.get("phase") != was.get("phase"):
        issue = f", issue {now['issue']}" if now.get("issue") else ""
        yield f"is {now['phase']}{issue}"


def _told_of_attempt(was: Json, now: Json) -> Iterator[str]:
    name = f"attempt {now['epoch']}"
    if now.get("node") and not was.get("node"):
        memory = f" with {now['memoryLimit']} of memory" if now.get("memoryLimit") else ""
        yield f"{name} is on {now['node']}{memory}"
    if now.get("cause") and not was.get("cause"):
        yield f"{name} is lost, cause: {now['cause']} ({_cut(now.get('message', ''))})"


def _cut(message: str) -> str:
    # It may end with the agent's last words, which are lines of a log.
    return message if len(message) <= _MESSAGE_CHARACTERS else f"{message[:_MESSAGE_CHARACTERS]} ..."


def _status(run: Json | None) -> Json:
    status: Json = (run or {}).get("status") or {}
    return status
