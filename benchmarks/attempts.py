"""An attempt of ours at the agent that the benchmarks run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import uuid4

from google.adk.sessions.session import Session

from benchmarks.apps import build_app
from triage_agent.attempt.record import AttemptRecord
from triage_agent.attempt.running import append_input, open_session, run_events
from triage_agent.attempt.sessions import AttemptSessionService
from triage_agent.replay.gate import Gate
from triage_agent.replay.plugins import replaying_plugins
from triage_agent.replay.replies import ReplyBook
from triage_agent.replay.trouble import Trouble
from triage_contract.database.engine import open_engine
from triage_contract.database.fence import NewAttempt, open_attempt
from triage_contract.database.prepared import PreparedConnection
from triage_contract.database.rows import RunRow, SessionKey
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt of ours, opened and not begun. ``token`` lets others write to its session as well."""

    run: RunRow
    token: str
    record: AttemptRecord
    service: AttemptSessionService

    async def begin(self) -> Session:
        """Connect, and create its session."""
        return await open_session(self.service, self.run.session)

    async def work(self, session: Session) -> None:
        """Run it to its end, as a pod does that has its session."""
        assert self.run.message is not None
        plugins = replaying_plugins(
            journal=self.record,
            replies=ReplyBook(self.run.invocation_id, (), ()),
            declared={},
            gate=Gate(),
            trouble=Trouble(),
        )
        await append_input(self.service, session, self.run.invocation_id, self.run.message)
        self.service.hand_over(session)
        async for _ in run_events(
            build_app(), self.service, self.run.session, self.run.invocation_id, plugins
        ):
            pass


@asynccontextmanager
async def open_our_attempt(
    url: DatabaseUrl, connection: PreparedConnection | None = None
) -> AsyncIterator[Attempt]:
    """Open an attempt at a new run, as an operator does. ``connection`` None: it gets one of its own."""
    run = _new_run()
    operator = open_engine(url, application="bench")
    opened = await open_attempt(
        operator, run, observed_epoch=0, attempt=NewAttempt(pod=None, image=None, memory_limit_bytes=None)
    )
    await operator.dispose()
    application = f"triage-agent/{opened.serial}"
    own = PreparedConnection(url, application=application)
    record = AttemptRecord(connection or own, serial=opened.serial, token=opened.token)
    service = AttemptSessionService(
        url, application=application, token=opened.token, record=record, own=run.session
    )
    try:
        yield Attempt(run=run, token=opened.token, record=record, service=service)
    finally:
        await own.close()
        await service.close()


def _new_run() -> RunRow:
    run_id = uuid4()
    return RunRow(
        id=run_id,
        cluster_id="bench",
        namespace="bench",
        name=str(run_id),
        agent="bench",
        session=SessionKey(app_name="bench", user_id="user", session_id=f"run-{run_id}"),
        invocation_id=f"inv-{run_id}",
        message={"parts": [{"text": "Go."}]},
        root=None,
        state=RunState.ACTIVE,
        reason=None,
        created_at=None,
        ended_at=None,
    )
