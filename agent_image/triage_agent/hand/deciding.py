"""Calls in doubt of a run by hand: the person at the keyboard decides about them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_agent.exceptions import ConfigurationError, InDoubtError, RefusedError
from triage_agent.replay.sanitising import storable
from triage_contract.database.deciding import carry_out
from triage_contract.database.reading import judge, read_fence
from triage_contract.database.rows import RunRow
from triage_contract.states import InDoubt, RunState
from triage_contract.verdict import DoubtfulCall, Judgement, Remedy

HOW_TO_GO_ON: Final = (
    "`triage resume` with `--done CALL=JSON` gives its result, with `--in-doubt retry` runs it again,"
    " with `--in-doubt fail` gives the run up"
)

_GIVE_UP: Final = text(
    "UPDATE triage.runs SET state = :state, reason = :reason, ended_at = clock_timestamp()"
    " WHERE id = :run_id AND state = 'active'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """What is to be done about calls in doubt. ``done`` are results by call id; ``in_doubt`` is about all others."""

    in_doubt: InDoubt = InDoubt.PARK
    done: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def parse(cls, in_doubt: str, done: tuple[str, ...]) -> "Decisions":
        """Read the options of the command line.

        Raises:
            ConfigurationError: a result is no ``CALL=JSON`` with a JSON object.
        """
        results = {}
        for given in done:
            call, _, result = given.partition("=")
            try:
                results[call] = json.loads(result)
            except ValueError:
                results[call] = None
            if not isinstance(results[call], dict):
                raise ConfigurationError(f"--done is {given!r}, not CALL=JSON with a JSON object")
        return cls(in_doubt=InDoubt(in_doubt.capitalize()), done=results)


async def decide(engine: AsyncEngine, run: RunRow, decisions: Decisions) -> Judgement:
    """Carry out what was decided, while nobody may write to the session; gives the judgement that then holds.

    Calls whose outside world can be asked are left to the attempt, unless their result was given.

    Raises:
        InDoubtError: a call is in doubt, and nothing was decided about it, or that the run be given up.
        RefusedError: a result is about a call that is not in doubt.
    """
    async with engine.begin() as connection:
        fence = await read_fence(connection, run.session)
        epoch = 0 if fence is None else fence.epoch  # without a fence, nothing ever began

        async def settle(doubt: DoubtfulCall, result: Mapping[str, Any] | None) -> None:
            await carry_out(
                connection, run.session, fence=epoch, call=doubt.key, epoch=doubt.epoch, result=result
            )

        doubts = {doubt.id: doubt for doubt in (await judge(connection, run)).doubts}
        for call, result in decisions.done.items():
            if call not in doubts:
                raise RefusedError(f"call {call!r} is not in doubt")
            await settle(doubts.pop(call), storable(result))
        left = [doubt for doubt in doubts.values() if doubt.remedy is not Remedy.ASK]
        reason = f"{_named(left)} may have happened"
        if decisions.in_doubt is InDoubt.RETRY:
            for doubt in left:
                await settle(doubt, None)
        elif decisions.in_doubt is InDoubt.FAIL and left:
            await connection.execute(_GIVE_UP, {"run_id": run.id, "state": RunState.FAILED, "reason": reason})
    if left and decisions.in_doubt is InDoubt.FAIL:
        raise InDoubtError(f"invocation {run.invocation_id!r} is given up: {reason}")
    if left and decisions.in_doubt is InDoubt.PARK:
        raise InDoubtError(f"invocation {run.invocation_id!r} is in doubt: {reason}; {HOW_TO_GO_ON}")
    async with engine.connect() as connection:
        return await judge(connection, run)


def _named(doubts: list[DoubtfulCall]) -> str:
    return ", ".join(f"{doubt.name} (call {doubt.id})" for doubt in doubts)
