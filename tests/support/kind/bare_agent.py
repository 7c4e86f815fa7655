"""The docs-triage agent on ADK alone, as somebody writes it for a Job: begin its session, or resume what is unfinished.

It runs in a pod, on the agent's image, and takes the same model, pages and tools. Each event is stored by ADK's own
service, ``SESSIONS`` names the database; ``SESSION`` is its session and ``REPORT`` the message.
"""

import asyncio
import os
import signal
import sys
import time
from typing import Final

from google.adk.runners import Runner
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.adk.sessions.session import Session
from google.genai import types

from triage_agent.docs_triage.agent import NAME, build_app
from triage_agent.docs_triage.settings import DocsSettings

_USER: Final = "user"


def _unfinished(session: Session) -> str | None:
    """Give the invocation that has no final answer; None: there is none."""
    if not session.events or (session.events[-1].is_final_response() and session.events[-1].author != "user"):
        return None
    return session.events[-1].invocation_id


async def _work() -> None:
    service = DatabaseSessionService(os.environ["SESSIONS"])
    name = os.environ["SESSION"]
    session = await service.get_session(app_name=NAME, user_id=_USER, session_id=name)
    if session is None:
        session = await service.create_session(app_name=NAME, user_id=_USER, session_id=name)
    resumed = _unfinished(session)
    if session.events and resumed is None:
        return

    def stand_still() -> None:
        # The test's: the first process is lost right after the write, the next one is not.
        if resumed is None:
            time.sleep(3600)

    app = build_app(DocsSettings.from_environment(os.environ), keyed=False, after_write=stand_still)
    runner = Runner(app=app, session_service=service)
    message = types.Content(role="user", parts=[types.Part(text=os.environ["REPORT"])])
    events = runner.run_async(
        user_id=_USER,
        session_id=name,
        invocation_id=resumed,
        new_message=message if resumed is None else None,
    )
    async for _ in events:
        pass


if __name__ == "__main__":
    # As the first process of a container it would otherwise not hear SIGTERM.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    asyncio.run(_work())
