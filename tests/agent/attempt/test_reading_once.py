"""An attempt that goes on reads the events of its session once, for itself and for ADK's runner."""

import pytest

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, say
from triage_agent.attempt.record import AttemptRecord
from triage_contract.states import Outcome


def look() -> str:
    return "seen"


async def test_a_resumed_attempt_reads_its_events_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    script = by_turn(call("look"), RuntimeError("the model broke"))
    assert (await stage.attempt(an_app(ScriptedLlm(script=script), [look]))).outcome is not Outcome.FINISHED
    numbers: list[int] = []
    read = AttemptRecord.events

    async def counted(record: AttemptRecord) -> list[str]:
        events = await read(record)
        numbers.append(len(events))
        return events

    monkeypatch.setattr(AttemptRecord, "events", counted)
    stored = len(await stage.stored())
    app = an_app(ScriptedLlm(script=by_turn(call("look"), say("Done."))), [look])
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert numbers == [stored]
