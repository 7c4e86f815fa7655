"""What is seen of a namespace from outside: its objects, and what its runs left in the database."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from triage_contract.database.reading import read_attempts
from triage_contract.database.rows import AttemptRow
from triage_contract.names import API_VERSION, Label
from triage_contract.states import Phase
from triage_local.demo.asking import until_true
from triage_local.demo.following import Followed
from triage_local.exceptions import PatienceError
from triage_local.kubelet.cluster import Cluster

Json = dict[str, Any]
Found = TypeVar("Found")

_PLURALS: Final = {
    "TriageRun": f"/apis/{API_VERSION}/namespaces/{{}}/triageruns",
    "TriageAgent": f"/apis/{API_VERSION}/namespaces/{{}}/triageagents",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/api/v1/namespaces/{}/events",
}
_ISSUES: Final = text("SELECT number FROM triage.issues WHERE run_id = :id ORDER BY number")
# A final answer is what the verdict takes for one: words of an agent that calls nothing.
_ANSWERS: Final = text(
    "SELECT count(*) FROM events WHERE session_id = :session AND event_data ->> 'author' <> 'user'"
    ' AND event_data @> \'{"content": {"role": "model"}}\''
    " AND jsonb_path_exists(event_data, '$.content.parts[*].text')"
    " AND NOT jsonb_path_exists(event_data, '$.content.parts[*].function_call')"
)
_SUPPRESSED: Final = text(
    "SELECT coalesce(sum(suppressed_by_journal), 0)::int, coalesce(sum(suppressed_by_tracker), 0)::int"
    " FROM triage.tool_calls WHERE session_id = :session"
)
_ASKED_TO_LEAVE: Final = text(
    "SELECT count(*) > 0 FROM triage.attempts WHERE run_id = :id AND ended_at IS NULL AND sigterm_at IS NOT NULL"
)

# The heartbeat that follows the request is answered with it.
_ASKED_TO_HAND_OFF: Final = text(
    "SELECT count(*) > 0 FROM triage.attempts WHERE run_id = :id AND heartbeat_at > handoff_requested_at"
)


class Sight:
    """One namespace. Objects are seen while the lists ``runs``, ``pods``, ``agents`` and ``said`` are followed."""

    def __init__(self, api: Cluster, engine: AsyncEngine, namespace: str) -> None:
        self.api = api
        self.engine = engine
        self.namespace = namespace
        self.runs = Followed(api, self.path("TriageRun"), _hear)
        self.pods = Followed(api, self.path("Pod"), _hear)
        self.agents = Followed(api, self.path("TriageAgent"), _hear)
        self.said = Followed(api, self.path("Event"), _hear)

    def path(self, kind: str, name: str | None = None) -> str:
        """Give the path of the objects of a kind, or of one of them."""
        collection = _PLURALS[kind].format(self.namespace)
        return collection if name is None else f"{collection}/{name}"

    async def until(self, run: str, find: Callable[[Json], Found | None], what: str) -> Found:
        """Wait until something is found in a run, and give it."""

        def look(runs: Mapping[str, Json]) -> Found | None:
            return find(runs[run]) if run in runs else None

        try:
            return await self.runs.until(look, f"{run} {what}")
        except PatienceError as error:
            raise AssertionError(f"{error}; it is {self.runs.objects.get(run)}") from None

    async def phase(self, run: str, *phases: Phase) -> Json:
        """Wait until a run is in one of these phases, and give its status."""

        def find(seen: Json) -> Json | None:
            status: Json = seen.get("status") or {}
            return status if status.get("phase") in phases else None

        return await self.until(run, find, f"is {' or '.join(phases)}")

    async def ended(self, run: str) -> Json:
        """Wait for a run's end, and give its status."""
        return await self.phase(run, *(phase for phase in Phase if phase.terminal))

    async def progress(self, run: str, reason: str) -> Json:
        """Wait until a reason is given for how a run gets on, and give the condition that has it."""

        def find(seen: Json) -> Json | None:
            conditions = (seen.get("status") or {}).get("conditions") or []
            found = (one for one in conditions if (one["type"], one["reason"]) == ("Progressing", reason))
            return next(found, None)

        return await self.until(run, find, f"gets on as {reason}")

    async def held_up(self, run: str, reason: str) -> str:
        """Wait until a run is held up for a reason, and give the message of the condition."""
        condition = await self.progress(run, reason)
        assert condition["status"] == "False"
        return str(condition["message"])

    async def agent_condition(self, agent: str, kind: str) -> Json:
        """Wait until an agent has a condition, and give it."""

        def find(agents: Mapping[str, Json]) -> Json | None:
            conditions = (agents[agent].get("status") or {}).get("conditions") or []
            return next((one for one in conditions if one["type"] == kind), None)

        return await self.agents.until(find, f"agent {agent} has the condition {kind}")

    async def finished_because(self, run: str) -> str:
        """Wait for a run's end, and give the message of the condition that tells of it."""
        conditions = (await self.ended(run))["conditions"]
        return str(next(one["message"] for one in conditions if one["type"] == "Finished"))

    async def pod(self, run: str, epoch: int = 1) -> Json:
        """Wait for the pod of an attempt on its node, and give it."""
        uid = await self.until(run, lambda seen: str(seen["metadata"]["uid"]), "exists")

        def find(pods: Mapping[str, Json]) -> Json | None:
            for pod in pods.values():
                labels = pod["metadata"].get("labels") or {}
                if (labels.get(Label.RUN_UID), labels.get(Label.EPOCH)) == (uid, str(epoch)):
                    return pod if pod["spec"].get("nodeName") else None
            return None

        return await self.pods.until(find, f"{run} has a pod {epoch} on a node")

    async def started(self, run: str, epoch: int = 1) -> str:
        """Wait until the agent container of an attempt has started, and give the name of its pod."""
        name = str((await self.pod(run, epoch))["metadata"]["name"])

        def find(pods: Mapping[str, Json]) -> bool | None:
            statuses = (pods[name].get("status") or {}).get("containerStatuses") or [] if name in pods else []
            return any({"running", "terminated"} & status["state"].keys() for status in statuses) or None

        await self.pods.until(find, f"pod {name} starts")
        return name

    async def told(self, run: str, *reasons: str) -> list[str]:
        """Wait until Events about a run have these reasons in this order, among others; give their messages."""

        def find(events: Mapping[str, Json]) -> list[str] | None:
            missing, messages = list(reasons), []
            for event in _about(run, events):
                if missing and event["reason"] == missing[0]:
                    del missing[0]
                    messages.append(str(event["message"]))
            return None if missing else messages

        try:
            return await self.said.until(find, f"Events tell of {run}: {', '.join(reasons)}")
        except PatienceError as error:
            seen = [event["reason"] for event in _about(run, self.said.objects)]
            raise AssertionError(f"{error}; they tell: {', '.join(seen)}") from None

    def uid(self, run: str) -> UUID:
        """Give the UID of a run that was seen."""
        return UUID(self.runs.objects[run]["metadata"]["uid"])

    async def attempts(self, run: str) -> tuple[AttemptRow, ...]:
        """Read the rows of a run's attempts."""
        async with self.engine.connect() as connection:
            return await read_attempts(connection, self.uid(run))

    async def asked_to_leave(self, run: str) -> None:
        """Wait until the newest process of a run knows that it is to end."""
        await until_true(self.engine, _ASKED_TO_LEAVE, f"{run} is to leave", id=self.uid(run))

    async def asked_to_hand_off(self, run: str) -> None:
        """Wait until a process of a run knows that it is to hand off."""
        await until_true(self.engine, _ASKED_TO_HAND_OFF, f"{run} is to hand off", id=self.uid(run))

    async def issues(self, run: str) -> list[str]:
        """Give the issues that a run has filed."""
        return await self.issues_of(self.uid(run))

    async def issues_of(self, uid: UUID) -> list[str]:
        """Give the issues that a run has filed which may be gone."""
        async with self.engine.connect() as connection:
            return [str(number) for (number,) in await connection.execute(_ISSUES, {"id": uid})]

    async def answers(self, run: str) -> int:
        """Count the final answers in a run's session."""
        async with self.engine.connect() as connection:
            count: int = (await connection.execute(_ANSWERS, self._session(run))).scalar_one()
            return count

    async def suppressed(self, run: str) -> tuple[int, int]:
        """Count the suppressed duplicates of a run: by the journal, and by the tracker."""
        async with self.engine.connect() as connection:
            journal, tracker = (await connection.execute(_SUPPRESSED, self._session(run))).one()
            return journal, tracker

    async def succeeded(self, run: str, causes: Sequence[str | None] = ()) -> Json:
        """Wait for a run's success, see that it left what it should and nothing twice, and give its status.

        ``causes`` are those of its lost or handed-off attempts.
        """
        status = await self.ended(run)
        assert status["phase"] == Phase.SUCCEEDED, status
        issues = await self.issues(run)
        assert issues == [status.get("issue")], status.get("output")
        assert await self.answers(run) == 1
        assert [one.get("cause") for one in status["attempts"]] == [*causes, None]
        return status

    def _session(self, run: str) -> Json:
        return {"session": f"run-{self.uid(run)}"}


def _about(run: str, events: Mapping[str, Json]) -> list[Json]:
    about = [event for event in events.values() if event["involvedObject"]["name"] == run]
    return sorted(about, key=version)


def version(obj: Json) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _hear(_before: Json | None, _after: Json) -> None:
    """Followed objects are looked at when somebody waits for them."""
