"""The table of shapes: what is accepted, what is refused, and that what is accepted holds after a kill anywhere.

``docs/shapes.md`` shows the same table. Each accepted shape is run by attempts that die after everything that they do
for the first time, so that each stored event, journaled reply or call, and effect is once the last thing that a
process did. Its tools are those whose other side keeps a call's key, or change nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.platform.time import get_time
from google.genai.types import Content

from support.databases import a_run
from support.dying import Mortal, mortal
from support.shapes import ACCEPTED, AS_WRITTEN, FILING, GOES_ON, KINDS, REFUSALS, Shape
from support.stage import Stage, stage
from triage_agent.attempt.running import open_session
from triage_agent.exceptions import ShapeRefusedError
from triage_agent.replay.sessions import FencedSessionService
from triage_agent.shapes import inspect_shape
from triage_contract.database.engine import open_engine
from triage_contract.names import REPLAYED_METADATA
from triage_contract.states import InDoubt, Outcome, ToolKind

__all__ = ["mortal", "stage"]

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

PAGE = Path(__file__).parents[2] / "docs" / "shapes.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of a run: effects by tool, how many replies, what its agents said and called, and what last."""

    effects: Counter[str]
    replies: int
    said: Counter[str]
    said_again: Counter[str]
    last: str | None


async def told(mortal: Mortal, shape: Shape) -> Told:
    """Carry out a run of a shape, with its answers from outside, to its end."""
    stage = mortal.stage
    stage.run, stage.last = a_run(), None
    stage.in_doubt, stage.tools = InDoubt.PARK, KINDS
    mortal.effects.clear()
    mortal.deeds.clear()
    turns = shape.recording().turns
    ending = await mortal.live(lambda: App(name="golden", root_agent=shape.recording().root))
    for turn in turns[1:]:
        assert ending.outcome is Outcome.WAITING, ending.message
        message = turn.message(await stored(stage))
        assert message is not None
        await append(stage, message)
        ending = await mortal.live(lambda: App(name="golden", root_agent=shape.recording().root))
    assert ending.outcome is Outcome.FINISHED, ending.message
    # The runs of a test have a database together.
    await stage.database.values("UPDATE triage.runs SET state = 'succeeded'")
    said: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
    last: str | None = None
    for event in await stored(stage):
        if event.author != "user" and event.content is not None:
            last = next(reversed(gist(event.content)), last)
            is_again = REPLAYED_METADATA in (event.custom_metadata or {})
            said[is_again].update(gist(event.content))
    ((replies,),) = await stage.database.values(
        "SELECT count(*)::int FROM triage.model_replies WHERE session_id = :session_id",
        session_id=stage.run.session.session_id,
    )
    assert isinstance(replies, int)
    return Told(
        effects=Counter(name for name, _ in mortal.effects),
        replies=replies,
        said=said[False],
        said_again=said[True],
        last=last,
    )


def gist(content: Content) -> list[str]:
    """The texts and calls of a content."""
    named = [part.text or (part.function_call and part.function_call.name) for part in content.parts or []]
    return [name for name in named if name]


async def stored(stage: Stage) -> Sequence[Event]:
    rows = await stage.database.values(
        "SELECT event_data FROM events WHERE session_id = :session_id ORDER BY timestamp, id",
        session_id=stage.run.session.session_id,
    )
    return [Event.model_validate(row[0]) for row in rows]


async def append(stage: Stage, content: Content) -> None:
    """Append a person's answer where its question is, as one does that holds the fence."""
    attempt = stage.last = await stage.database.open(stage.run, observed_epoch=stage.epoch)
    engine = open_engine(stage.database.url, application="answering", token=attempt.token)
    service = FencedSessionService(engine, stage.database.url)
    session = await open_session(service, stage.run.session)
    (answered,) = [part.function_response for part in content.parts or []]
    assert answered is not None
    asked = next(
        event for event in session.events if answered.id in {it.id for it in event.get_function_calls()}
    )
    event = Event(
        invocation_id=stage.run.invocation_id,
        author="user",
        branch=asked.branch,
        isolation_scope=asked.isolation_scope,
        content=content,
        timestamp=get_time(),
    )
    await service.append_event(session, event)
    await engine.dispose()
    await stage.database.close(stage.run, attempt.epoch)


@pytest.mark.parametrize("shape", ACCEPTED, ids=lambda shape: shape.title)
async def test_after_a_death_at_each_step_everything_is_done_once(shape: Shape, mortal: Mortal) -> None:
    mortal.deadly = lambda _: False
    undisturbed = await told(mortal, shape)
    assert mortal.deaths == 0
    mortal.deadly = lambda _: True
    after = await told(mortal, shape)
    assert mortal.deaths > 1
    assert after.effects == undisturbed.effects
    assert after.last == undisturbed.last
    assert after.replies == undisturbed.replies - shape.unsaid
    said = after.said + after.said_again
    if shape.resume == GOES_ON:
        assert said.total() == undisturbed.said.total() - shape.unsaid
    assert set(said) == set(undisturbed.said)
    assert after.said <= undisturbed.said or shape.resume == AS_WRITTEN


@pytest.mark.parametrize("title", FILING)
async def test_an_undeclared_effect_that_nobody_knows_of_is_named(title: str, mortal: Mortal) -> None:
    (shape,) = (it for it in ACCEPTED if it.title == title)
    stage = mortal.stage
    stage.in_doubt, stage.tools = InDoubt.PARK, {**KINDS, "file_issue": ToolKind.UNDECLARED}
    mortal.deadly = lambda deed: deed[:2] == ("effect", "file_issue")
    ending = await mortal.live(lambda: App(name="golden", root_agent=shape.recording().root))
    assert ending.outcome is Outcome.IN_DOUBT
    assert ending.message == "Begun, and not known to have happened: file_issue."
    assert set(mortal.effects.values()) == {1}


@pytest.mark.parametrize("shape", REFUSALS, ids=lambda shape: shape.title)
def test_what_cannot_hold_is_refused(shape: Shape) -> None:
    assert reason(shape)


def reason(shape: Shape) -> str:
    with pytest.raises(ShapeRefusedError) as refused:
        inspect_shape(App(name="golden", root_agent=shape.recording().root), {})
    return str(refused.value).partition("resumed safely: ")[2]


def test_the_page_shows_this_table() -> None:
    table = [f"| {it.title} | {it.resume} | {it.note} |" for it in ACCEPTED]
    table += [f"| {it.title} | {it.resume} | {reason(it)} |" for it in REFUSALS]
    shown = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    assert [line for line in shown if line != "| Shape | Resume | Note |"] == table
