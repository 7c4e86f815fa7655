"""Sessions that releases of google-adk from 2.9 on left with lost calls: `hack/record_lost_calls.py` made them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.adk.events.event import Event

from support.stage import ScriptedLlm, Stage, an_app, say
from support.stored import store
from triage_contract.states import InDoubt, Outcome

RECORDINGS = sorted((Path(__file__).parent / "left_behind").glob("*.json"))


def answers_in(events: list[Event]) -> set[str | None]:
    return {response.id for event in events for response in event.get_function_responses()}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
async def test_the_lost_calls_run_and_the_answered_ones_do_not(stage: Stage, recording: Path) -> None:
    events = [Event.model_validate(event) for event in json.loads(recording.read_text())]
    stage.run = replace(stage.run, invocation_id=events[0].invocation_id, message=None)
    await store(stage, *events)
    ran: list[str] = []

    async def read(name: str) -> str:
        ran.append(name)
        return f"page {name}"

    async def look(name: str) -> str:
        ran.append(name)
        return f"page {name}"

    model = ScriptedLlm(script=lambda _: [say("Done.")])
    stage.in_doubt = InDoubt.PARK
    assert (await stage.attempt(an_app(model, [read, look]))).outcome is Outcome.FINISHED
    answered = answers_in(events)
    assert sorted(ran) == [name for name in "abc" if f"call_{name}" not in answered]
    assert len(model.asked) == 1
    parts = [part for content in model.asked[0].contents for part in content.parts or []]
    shown: dict[str | None, Any] = {
        part.function_response.id: part.function_response.response
        for part in parts
        if part.function_response is not None
    }
    assert shown == {
        f"call_{name}": {"result": f"{'earlier' if f'call_{name}' in answered else 'page'} {name}"}
        for name in "abc"
    }
