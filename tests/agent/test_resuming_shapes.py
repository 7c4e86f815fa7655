"""Accepted agent trees, killed at every commit and resumed as the verdict says: each finishes, with each call answered.

A kill after a commit leaves the recorded events up to it. The resume here has no journal, so it shows what ADK does by
itself, and that what the verdict calls wedged needs its repair and nothing else does.
"""

import asyncio
import itertools
from collections.abc import Iterator, Sequence

import pytest
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.platform.time import reset_time_provider, set_time_provider
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.workflow import BaseNode
from google.genai.types import Content, FunctionResponse, Part

from support.golden import Golden, load
from support.golden_agents import AGENTS
from triage_agent.shapes import inspect_shape, resumable
from triage_contract.states import Verdict
from triage_contract.verdict import Call, EventFacts, Judgement, RunFacts, event_facts, verdict

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

INVOCATION = "inv-golden"
ACCEPTED = [
    "custom_saved",
    "loop",
    "loop_exit",
    "parallel",
    "parallel_calls",
    "sequential",
    "sequential_of_shells",
    "sequential_with_transfer",
    "single",
    "single_turn_sub_agent",
    "single_with_schema",
    "transfer",
    "transfer_and_back",
    "transfer_between_peers",
    "workflow_as_tool",
    "workflow_branches",
    "workflow_functions",
    "workflow_llm_last",
    "workflow_llm_node",
    "workflow_nested",
    "workflow_parallel_workers",
]
HANGS_SECONDS = 2.0


@pytest.fixture(autouse=True)
def _later_clock() -> Iterator[None]:
    ticks = itertools.count(1_800_000_000)
    set_time_provider(lambda: float(next(ticks)))
    yield
    reset_time_provider()


async def killed(golden: Golden, commits: int) -> tuple[BaseSessionService, Session]:
    """Return a session as a kill after so many commits leaves it."""
    service = InMemorySessionService()
    session = await service.create_session(app_name="golden", user_id="triage", session_id="run-golden")
    for event in sorted(golden.stored[:commits], key=lambda event: (event["timestamp"], event["id"])):
        await service.append_event(session, Event.model_validate(event))
    return service, session


async def resume(root: BaseNode, service: BaseSessionService, session: Session) -> list[EventFacts]:
    """Run the invocation to where it ends; return all of its events."""
    runner = Runner(app=resumable(App(name="golden", root_agent=root)), session_service=service)
    async for _ in runner.run_async(user_id="triage", session_id=session.id, invocation_id=INVOCATION):
        pass
    after = await service.get_session(app_name="golden", user_id="triage", session_id=session.id)
    assert after is not None
    return [event_facts(event.model_dump(mode="json", exclude_none=True)) for event in after.events]


async def repair(calls: Sequence[Call], service: BaseSessionService, session: Session) -> None:
    """Answer calls in the user's name, each where its agent looks."""
    for call in calls:
        response = FunctionResponse(id=call.id, name=call.name, response={"error": "interrupted"})
        answer = Event(
            author="user",
            invocation_id=INVOCATION,
            branch=call.branch or None,
            isolation_scope=call.scope or None,
            content=Content(role="user", parts=[Part(function_response=response)]),
        )
        await service.append_event(session, answer)


def judge(golden: Golden, events: Sequence[EventFacts]) -> Judgement:
    return verdict(events, RunFacts(root=golden.root), None)


def answered(events: Sequence[EventFacts]) -> set[str]:
    names = {call.id: call.name for event in events for call in event.calls}
    return {names[answer] for event in events for answer in event.answers}


@pytest.mark.parametrize("name", ACCEPTED)
async def test_killed_anywhere_it_finishes(name: str) -> None:
    golden = load(name)
    inspect_shape(App(name="golden", root_agent=AGENTS[name]().root), {})
    asked = {call.name for event in golden.prefix(len(golden.stored)) for call in event.calls}
    for commits in range(1, len(golden.stored) + 1):
        before = judge(golden, golden.prefix(commits))
        if before.verdict is Verdict.FINISHED:
            continue
        service, session = await killed(golden, commits)
        if before.verdict is Verdict.WEDGED:
            await repair(before.calls, service, session)
        events = await resume(AGENTS[name]().root, service, session)

        where = f"after {golden.gist(commits)}"
        assert before.verdict in (Verdict.INTERRUPTED, Verdict.WEDGED), where
        assert judge(golden, events).verdict is Verdict.FINISHED, where
        assert answered(events) == asked, where


@pytest.mark.parametrize("name", ["single", "transfer", "sequential", "parallel", "loop"])
async def test_answered_call_is_not_made_again(name: str) -> None:
    """Nodes and single-turn sub-agents start over instead: only a journal knows their calls again."""
    golden = load(name)
    for commits in range(1, len(golden.stored)):
        prefix = golden.prefix(commits)
        if "file_issue" not in answered(prefix) or judge(golden, prefix).verdict is Verdict.FINISHED:
            continue
        service, session = await killed(golden, commits)
        events = await resume(AGENTS[name]().root, service, session)
        issues = [call for event in events for call in event.calls if call.name == "file_issue"]
        assert len(issues) == 1, f"after {golden.gist(commits)}"


async def test_node_of_a_workflow_skips_its_call_where_it_is_not_repaired() -> None:
    golden = load("workflow_llm_last")
    calls_at = next(at for at, event in enumerate(golden.stored) if event_facts(event).calls) + 1
    service, session = await killed(golden, calls_at)
    events = await resume(AGENTS["workflow_llm_last"]().root, service, session)
    assert "file_issue" not in answered(events)
    assert any(event.end_of_agent and event.author == golden.root.name for event in events)


async def test_step_of_a_transfer_to_a_sequential_agent_skips_its_call() -> None:
    golden = load("transfer_to_sequential")
    calls_at = next(
        at
        for at, event in enumerate(golden.stored)
        if any(c.name == "read_page" for c in event_facts(event).calls)
    )
    service, session = await killed(golden, calls_at + 1)
    events = await resume(AGENTS["transfer_to_sequential"]().root, service, session)
    assert "read_page" not in answered(events)


async def test_sequential_agent_as_a_node_skips_its_steps() -> None:
    golden = load("workflow_sequential_node")
    state_at = next(at for at, event in enumerate(golden.stored) if event_facts(event).author == "pipe")
    service, session = await killed(golden, state_at + 1)
    events = await resume(AGENTS["workflow_sequential_node"]().root, service, session)
    assert answered(events) == set()
    assert judge(golden, events).verdict is Verdict.FINISHED


async def test_second_task_hangs_at_a_resume_after_its_end() -> None:
    golden = load("task_sub_agent_twice")
    ends = [
        at
        for at, event in enumerate(golden.stored)
        if event_facts(event).final and event["author"] == "filer"
    ]
    service, session = await killed(golden, ends[-1] + 1)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(HANGS_SECONDS):
            await resume(AGENTS["task_sub_agent_twice"]().root, service, session)
