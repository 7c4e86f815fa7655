"""An agent of which only the database knows: it claims, writes and ends as a real one does, at a test's pace."""

import json
from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from support.databases import Database
from support.operated import Cluster, Json, environment
from triage_contract.database.engine import open_engine
from triage_contract.names import LIFE_LOCK_CLASS, AttemptEnv


class StubAgent:
    """One attempt's process, played by the test."""

    def __init__(self, engine: AsyncEngine, run_id: UUID, serial: int, epoch: int, token: str) -> None:
        self._engine = engine
        self._run_id = run_id
        self.serial = serial
        self._epoch = epoch
        self._token = token
        self._session: dict[str, Any] = {}
        self._life: AsyncConnection | None = None
        self._events = 0

    @classmethod
    async def in_pod(cls, database: Database, pod: Mapping[str, Any]) -> Self:
        """Be the process in a pod, until ``die``."""
        env = environment(pod)
        run_id, epoch, token = (
            UUID(env[AttemptEnv.RUN_ID]),
            int(env[AttemptEnv.EPOCH]),
            env[AttemptEnv.TOKEN],
        )
        [(serial,)] = await database.values("SELECT triage.serial_of(:run, :epoch)", run=run_id, epoch=epoch)
        engine = open_engine(database.url, application=f"triage-agent/{serial}", token=token)
        return cls(engine, run_id, int(str(serial)), epoch, token)

    async def claim(self, *, lock: bool = True) -> None:
        """Take the life lock, then claim."""
        if lock:
            self._life = await self._engine.connect()
            await self._life.execute(
                text("SELECT pg_advisory_lock(:class, :serial)"),
                {"class": LIFE_LOCK_CLASS, "serial": self.serial},
            )
            await self._life.commit()
        row = (await self._call("claim")).mappings().one()
        keys = ("app_name", "user_id", "session_id", "invocation_id", "message")
        self._session = {key: row[key] for key in keys}
        root = json.dumps({"name": "docs_triage", "kind": "llm", "fingerprint": "1"})
        await self._call("record_root", root="CAST(:root AS jsonb)", values={"root": root})

    async def heartbeat(self, memory_used_bytes: int | None = None, *, sigterm: bool = False) -> str | None:
        """Send a heartbeat; give the reason of a hand-off that was asked for."""
        row = await self._call(
            "heartbeat",
            memory="CAST(:memory AS bigint)",
            sigterm=":sigterm",
            values={"memory": memory_used_bytes, "sigterm": sigterm},
        )
        reason: str | None = row.one().handoff_reason
        return reason

    async def work(self) -> None:
        """Leave something new: a model reply."""
        await self._call(
            "store_reply", key=":key", reply="'{}'", prompt="10", output="5", values={"key": str(self._epoch)}
        )

    async def file_issue(self, number: int = 41, *, duplicate: bool = False) -> None:
        """Begin and end a tool call that files an issue."""
        call = {"call": f"call-{self._epoch}"}
        await self._call(
            "begin_call", call=":call", tool="'file_issue'", kind="'Idempotent'", args="'{}'", values=call
        )
        result = {"number": number, "duplicate_request": duplicate}
        await self._call(
            "end_call",
            call=":call",
            state="'done'",
            result="CAST(:result AS jsonb)",
            actions="'{}'",
            duplicate=":duplicate",
            values={**call, "result": json.dumps(result), "duplicate": duplicate},
        )

    async def begin(
        self, call: str, kind: str = "Undeclared", *, tool: str = "send_mail", may_repeat: bool = False
    ) -> Mapping[str, Any]:
        """Begin a tool call; give what the journal says of it."""
        row = await self._call(
            "begin_call",
            call=":call",
            tool=":tool",
            kind=":kind",
            args="""'{"to": "ops"}'""",
            id=":call",
            may_repeat=":may_repeat",
            values={"call": call, "tool": tool, "kind": kind, "may_repeat": may_repeat},
        )
        return dict(row.mappings().one())

    async def end(self, call: str) -> None:
        """End a tool call."""
        await self._call(
            "end_call",
            call=":call",
            state="'done'",
            result="'{}'",
            actions="'{}'",
            duplicate="false",
            values={"call": call},
        )

    async def settle(self, call: str, settled: str) -> bool:
        """Journal what the outside world says of a call in doubt; give whether it may run again."""
        row = await self._call(
            "settle_call",
            call=":call",
            settled=":settled",
            result="CAST(:result AS jsonb)",
            message="'It was asked.'",
            asked_at="clock_timestamp()",
            values={
                "call": call,
                "settled": settled,
                "result": '{"id": 7}' if settled == "happened" else None,
            },
        )
        return bool(row.scalar_one())

    async def note_repair(self, message: str) -> None:
        """Note that the session was put right."""
        await self._call("note_repair", call="'call-1'", message=":message", values={"message": message})

    async def call(self, *calls: str, tool: str = "send_mail") -> None:
        """Store the events of a conversation that goes as far as the model's function calls."""
        parts = [{"function_call": {"id": call, "name": tool, "args": {}}} for call in calls]
        async with self._engine.begin() as connection:
            await self._open_session(connection)
            await self._store(connection, {"author": "user", "content": self._session["message"]})
            content = {"role": "model", "parts": parts}
            await self._store(connection, {"author": "docs_triage", "content": content})

    async def answer(self, said: str, *, after: str | None = None) -> None:
        """Store the events of a whole conversation: the user's message, the answer, the end of the agent.

        ``after`` is a call whose result comes before the answer; None: none.
        """
        async with self._engine.begin() as connection:
            await self._open_session(connection)
            await self._store(connection, {"author": "user", "content": self._session["message"]})
            if after is not None:
                response = {"function_response": {"id": after, "name": "send_mail", "response": {}}}
                content: Json = {"role": "user", "parts": [response]}
                await self._store(connection, {"author": "docs_triage", "content": content})
            content = {"role": "model", "parts": [{"text": said}]}
            await self._store(connection, {"author": "docs_triage", "content": content})
            await self._store(connection, {"author": "docs_triage", "actions": {"end_of_agent": True}})

    async def finish(
        self, outcome: str = "finished", error: str | None = None, retry_after: float | None = None
    ) -> None:
        """End the attempt with an outcome of its own."""
        await self._call(
            "finish",
            outcome=":outcome",
            error="CAST(:error AS text)",
            retry_after="CAST(:retry_after AS double precision)",
            values={"outcome": outcome, "error": error, "retry_after": retry_after},
        )

    async def release(self) -> None:
        """Hand off."""
        await self._call("release")

    async def die(self) -> None:
        """Lose every connection, the life lock's too."""
        life, self._life = self._life, None
        if life is not None:
            await life.invalidate()
            await life.close()
        await self._engine.dispose()

    async def _call(self, function: str, *, values: Mapping[str, Any] | None = None, **args: str) -> Any:
        given = ", ".join((":serial", ":token", *args.values()))
        async with self._engine.begin() as connection:
            return await connection.execute(
                text(f"SELECT * FROM triage.{function}({given})"),
                {"serial": self.serial, "token": self._token, **(values or {})},
            )

    async def _open_session(self, connection: AsyncConnection) -> None:
        await connection.execute(
            text(
                "INSERT INTO sessions (app_name, user_id, id, state, create_time, update_time)"
                " VALUES (:app_name, :user_id, :session_id, '{}', now(), now()) ON CONFLICT DO NOTHING"
            ),
            self._session,
        )

    async def _store(self, connection: AsyncConnection, event: Mapping[str, Any]) -> None:
        self._events += 1
        identity = f"event-{self._epoch}-{self._events}"
        data = {"id": identity, "invocation_id": self._session["invocation_id"], **event}
        await connection.execute(
            text(
                "INSERT INTO events (id, app_name, user_id, session_id, invocation_id, timestamp, event_data)"
                " VALUES (:id, :app_name, :user_id, :session_id, :invocation_id, clock_timestamp(),"
                " CAST(:data AS jsonb))"
            ),
            {**self._session, "id": identity, "data": json.dumps(data)},
        )


class StubAgents:
    """The processes of a test, all of which are dead after it."""

    def __init__(self, cluster: Cluster, database: Database) -> None:
        self._cluster = cluster
        self._database = database
        self._agents: list[StubAgent] = []

    async def start(self, epoch: int, run: str = "tokens", *, lock: bool = True) -> tuple[Json, StubAgent]:
        """Wait for the pod of an attempt, run it, and have its process claim and do some work."""
        pod = await self._cluster.pod_of(epoch, run)
        agent = await self.in_pod(pod)
        await self._cluster.start_pod(pod)
        await agent.claim(lock=lock)
        await agent.work()
        return pod, agent

    async def in_pod(self, pod: Json) -> StubAgent:
        """Be the process in a pod, and do nothing."""
        agent = await StubAgent.in_pod(self._database, pod)
        self._agents.append(agent)
        return agent

    async def finish(self, epoch: int, run: str = "tokens", said: str = "Done.") -> None:
        """Have the process of an attempt do all that is to be done."""
        _, agent = await self.start(epoch, run)
        await agent.answer(said)
        await agent.finish()
        await agent.die()

    async def close(self) -> None:
        """End all processes."""
        for agent in self._agents:
            await agent.die()
