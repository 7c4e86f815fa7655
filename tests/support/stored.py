"""Events that a session holds although no attempt of ours has stored them."""

from collections.abc import Sequence

from google.adk.events.event import Event
from google.genai import types

from support.stage import Stage
from triage_agent.attempt.running import open_session
from triage_agent.replay.sessions import FencedSessionService
from triage_contract.database.engine import open_engine


async def store(stage: Stage, *events: Event) -> None:
    """Append events to the session, through the fence of an attempt of its own."""
    await stage.database.close(stage.run, stage.epoch)
    attempt = stage.last = await stage.database.open(stage.run, observed_epoch=stage.epoch)
    engine = open_engine(stage.database.url, application="storing", token=attempt.token)
    service = FencedSessionService(engine, stage.database.url)
    session = await open_session(service, stage.run.session)
    for event in events:
        await service.append_event(session, event)
    await engine.dispose()
    await stage.database.close(stage.run, attempt.epoch)


def asked(stage: Stage, text: str = "Go.") -> Event:
    """The user's message."""
    return _event(stage, "user", [types.Part(text=text)])


def called(stage: Stage, parts: Sequence[types.Part], *, author: str = "docs") -> Event:
    """The calls of a reply."""
    return _event(stage, author, parts)


def answered(stage: Stage, *answers: tuple[types.Part, object], author: str) -> Event:
    """The results of calls."""
    parts = [
        types.Part(
            function_response=types.FunctionResponse(id=it.id, name=it.name, response={"result": result})
        )
        for part, result in answers
        if (it := part.function_call) is not None
    ]
    return _event(stage, author, parts, role="user")


def _event(stage: Stage, author: str, parts: Sequence[types.Part], *, role: str | None = None) -> Event:
    content = types.Content(role=role or ("user" if author == "user" else "model"), parts=list(parts))
    return Event(invocation_id=stage.run.invocation_id, author=author, content=content)
