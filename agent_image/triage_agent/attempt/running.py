"""Running an invocation: one idempotent call that starts it or goes on with it, for every kind of root."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

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
from triage_agent.replay.journal import BegunCall
from triage_contract.database.rows import SessionKey
from triage_contract.verdict import Call

OUTCOME_UNKNOWN: Final = {
    "error": "This call was interrupted and its outcome is not known. Do not assume it failed."
}


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
    await service.append_event(
        session, _user_event(invocation_id, content, event_id=f"{invocation_id}-input")
    )


async def append_repair(
    service: BaseSessionService,
    session: Session,
    invocation_id: str,
    calls: Iterable[Call],
    results: Mapping[str, BegunCall],
) -> None:
    """Answer calls that a resume would not run any more, in the user's name, so that the invocation can go on.

    ``results`` are what the journal holds of them; of the others nobody knows the outcome.
    """
    for call in calls:
        found = results.get(call.id)
        response = OUTCOME_UNKNOWN if found is None else found.result
        part = types.Part(
            function_response=types.FunctionResponse(
                id=call.id, name=call.name, response=dict(response or {})
            )
        )
        event = _user_event(invocation_id, types.Content(role="user", parts=[part]), event_id=None)
        # ADK looks for the call where the event says that it is.
        event.branch, event.isolation_scope = call.branch or None, call.scope or None
        if found is not None and found.actions is not None:
            event.actions.state_delta.update(found.actions.get("state_delta", {}))
        await service.append_event(session, event)


async def run_events(
    app: App,
    service: BaseSessionService,
    session: SessionKey,
    invocation_id: str,
    plugins: Iterable[BasePlugin],
) -> AsyncIterator[Event]:
    """Start the invocation, or go on with it, and give its events as they are stored.

    ``plugins`` come before those of the app. What the app holds open is closed at the end.
    """
    journaled = app.model_copy(update={"plugins": [*plugins, *app.plugins]})
    async with (
        Runner(app=journaled, app_name=session.app_name, session_service=service) as runner,
        aclosing(
            runner.run_async(
                user_id=session.user_id, session_id=session.session_id, invocation_id=invocation_id
            )
        ) as events,
    ):
        async for event in events:
            if not event.partial:
                yield event


def _user_event(invocation_id: str, content: types.Content, *, event_id: str | None) -> Event:
    event = Event(invocation_id=invocation_id, author="user", content=content, timestamp=get_time())
    return event if event_id is None else event.model_copy(update={"id": event_id})


async def _get(service: BaseSessionService, key: SessionKey) -> Session | None:
    return await service.get_session(app_name=key.app_name, user_id=key.user_id, session_id=key.session_id)
