"""Attempts that die after everything that they do for the first time: the harshest way to the end of a run."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.tools.function_tool import FunctionTool

from support.stage import Stage
from triage_agent.attempt.ending import Ending
from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.sessions import AttemptSessionService

Deed = tuple[str, ...]
LIVES = 100


@dataclass(slots=True, kw_only=True)
class Mortal:
    """A stage on which an attempt dies after each deed that none before it did, if it is a ``deadly`` one.

    A deed is what outlives a process: a stored event, a journaled reply or call, an effect. ``effects`` counts how
    often each effect was had, by tool and call id.
    """

    stage: Stage
    deadly: Callable[[Deed], bool] = lambda _: True
    deeds: set[Deed] = field(default_factory=set)
    effects: Counter[tuple[str, str]] = field(default_factory=Counter)
    deaths: int = 0
    dead: asyncio.Event = field(default_factory=asyncio.Event)
    is_living: bool = False
    last_reply: str = ""

    async def live(self, build: Callable[[], App]) -> Ending:
        """Carry out attempts, each with an app built anew, until one comes to its end by itself."""
        for _ in range(LIVES):
            self.dead = asyncio.Event()
            self.is_living = True
            attempt = asyncio.create_task(self.stage.attempt(build()))
            died = asyncio.create_task(self.dead.wait())
            await asyncio.wait({attempt, died}, return_when=asyncio.FIRST_COMPLETED)
            died.cancel()
            if not self.dead.is_set():
                self.is_living = False
                return attempt.result()
            self.deaths += 1
            attempt.cancel()
            await asyncio.wait({attempt})
        raise AssertionError(f"no attempt of {LIVES} came to an end")

    def around(self, function: Callable[..., Awaitable[Any]], deed: Callable[..., Deed | None]) -> Any:
        """Wrap what does a deed: after a death nothing is done any more."""

        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            if self.dead.is_set():
                await asyncio.Event().wait()
            result = await function(*args, **kwargs)
            done = deed(*args, **kwargs)
            if done is not None and done[0] == "event":
                done = (*done, self.last_reply)  # A loop says the same in each round.
            if done is not None and done not in self.deeds:
                self.deeds.add(done)
                self.last_reply = done[1] if done[0] == "reply" else self.last_reply
                if self.is_living and self.deadly(done):
                    self.dead.set()
                    await asyncio.Event().wait()
            return result

        return wrapper

    def effect(self, tool: FunctionTool, *, args: Any, tool_context: Any) -> Deed | None:
        """Count an effect."""
        if tool_context.actions.requested_tool_confirmations:
            return None
        self.effects[tool.name, tool_context.function_call_id] += 1
        return ("effect", tool.name, tool_context.function_call_id)


def _stored(_service: Any, session: Any, event: Event) -> Deed | None:
    if event.partial:
        return None
    return ("event", event.model_dump_json(exclude={"id", "timestamp", "custom_metadata", "invocation_id"}))


@pytest.fixture
def mortal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Mortal:
    """A run whose attempts die."""
    mortal = Mortal(stage=stage)
    deeds: list[tuple[type, str, Callable[..., Deed | None]]] = [
        (AttemptSessionService, "append_event", _stored),
        (AttemptRecord, "store_reply", lambda _record, key, *_, **__: ("reply", key)),
        (AttemptRecord, "begin_call", lambda _record, key, **_: ("begin", key)),
        (AttemptRecord, "end_call", lambda _record, key, **_: ("end", key)),
        (FunctionTool, "run_async", mortal.effect),
    ]
    for owner, name, deed in deeds:
        monkeypatch.setattr(owner, name, mortal.around(getattr(owner, name), deed))
    return mortal
