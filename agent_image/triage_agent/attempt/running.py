"""Running an invocation: one idempotent call that starts it or goes on with it, for every kind of root."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any

from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.platform.time import get_time, set_time_provider
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.session import Session
from google.genai import types

from triage_agent.replay.asking import REPLY_METADATA
from triage_agent.replay.clock import monotonic_times
from triage_contract.database.rows import SessionKey


async def open_session(service: BaseSessionService, key: SessionKey) -> Session:
    """Give the session, created if it is new, and make its clock go on from its last event."""
    session = await _get(service, key)
    if session is None:
        try:
            session = await service.create_session(
                app_name=key.app_name, user_id=key.user_id, session_id=key.session_id
            )
        except AlreadyExistsError:
            session = await _get(service, key)
    assert session is not None
    set_time_provider(monotonic_times(max((event.timestamp for event in session.events), default=None)))
    return session


def stored_reply_keys(session: Session) -> frozenset[str]:
    """Give the keys of the journaled model replies whose events the session holds."""
    keys = (
        (event.custom_metadata or {}).get(REPLY_METADATA)
        for event in session.events
        if event.author != "user"
    )
    return frozenset(key for key in keys if key is not None)


async def append_input(
    service: BaseSessionService, session: Session, invocation_id: str, message: Mapping[str, Any]
) -> None:
    """Store the user's message as the invocation's first event, unless an earlier attempt did."""
    if any(event.invocation_id == invocation_id for event in session.events):
        return
    content = types.Content.model_validate({**message, "role": "user"})
    event = Event(
        id=f"{invocation_id}-input",
        invocation_id=invocation_id,
        author="user",
        content=content,
        timestamp=get_time(),
    )
    await service.append_event(session, event)


@asynccontextmanager
async def open_runner(
    app: App, service: BaseSessionService, session: SessionKey, plugins: Iterable[BasePlugin]
) -> AsyncIterator[Runner]:
    """Give what runs the app on a session. ``plugins`` come before its own; what it holds open is closed at the end."""
    journaled = app.model_copy(update={"plugins": [*plugins, *app.plugins]})
    async with Runner(app=journaled, app_name=session.app_name, session_service=service) as runner:
        yield runner


async def run_invocation(
    runner: Runner, session: SessionKey, invocation_id: str, config: RunConfig | None = None
) -> AsyncIterator[Event]:
    """Start the invocation, or go on with it, and give its events as they are stored.

    ``config`` None: ADK's default.
    """
    async with aclosing(
        runner.run_async(
            user_id=session.user_id,
            session_id=session.session_id,
            invocation_id=invocation_id,
            run_config=config,
        )
    ) as events:
        async for event in events:
            if not event.partial:
                yield event


async def run_events(
    app: App,
    service: BaseSessionService,
    session: SessionKey,
    invocation_id: str,
    plugins: Iterable[BasePlugin],
) -> AsyncIterator[Event]:
    """Open a runner, and run the invocation with it."""
    async with open_runner(app, service, session, plugins) as runner:
        async for event in run_invocation(runner, session, invocation_id):
            yield event


async def _get(service: BaseSessionService, key: SessionKey) -> Session | None:
    return await service.get_session(app_name=key.app_name, user_id=key.user_id, session_id=key.session_id)
