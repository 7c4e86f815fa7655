"""The calls that a run waits for, as its status shows them. Pure."""

from typing import Final

from triage_contract.api.run import WaitingCall
from triage_contract.states import Doubt, ToolKind, Verdict
from triage_contract.texts import masked
from triage_contract.verdict import Remedy
from triage_operator.snapshot import JournaledCall, Snapshot

_MAX_CALLS: Final = 32
_MAX_NAME: Final = 253
_MAX_KEY: Final = 512
"""Bounds of the API; no call of ours comes near them."""

_WHY: Final = {
    Doubt.RAISED: "It ended in an error, and may have had its effect before",
    Doubt.UNKNOWN: "Its outside world was asked, and could not tell",
    Doubt.NOT_HAPPENED: "Its outside world has not seen it, but the process that began it may still be alive",
}


def waiting_calls(snapshot: Snapshot) -> tuple[WaitingCall, ...]:
    """Give the parked calls, or those that wait for an answer from outside."""
    judgement = snapshot.judgement
    if judgement is None:
        return ()
    if judgement.verdict is Verdict.WAITING:
        return tuple(
            WaitingCall(
                call=call.id[:_MAX_KEY],
                tool=call.name[:_MAX_NAME],
                why="It waits for an answer from outside.",
            )
            for call in judgement.calls[:_MAX_CALLS]
        )
    parked = {doubt.key for doubt in judgement.doubts if doubt.remedy is Remedy.PARK}
    return tuple(_parked(call) for call in snapshot.journal if call.key in parked)[:_MAX_CALLS]


def _parked(call: JournaledCall) -> WaitingCall:
    return WaitingCall(
        call=call.key[:_MAX_KEY],
        tool=call.tool[:_MAX_NAME],
        attempt=call.epoch,
        arguments=masked(call.arguments),
        since=call.begun_at,
        why=_why(call),
    )


def _why(call: JournaledCall) -> str:
    if call.doubt in _WHY:
        said = _WHY[Doubt(call.doubt)]
        return f"{said}: {masked(call.doubt_message)}" if call.doubt_message else f"{said}."
    if call.kind == ToolKind.UNDECLARED:
        return "It began, its end is not known, and nobody declared what repeating it does."
    return "It began, and its end is not known."
