"""The tools, called as ADK calls them."""

import inspect
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event import Event
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content, FunctionCall, Part

from support.github import REPOSITORY, TOKEN, github
from triage_agent.docs_triage import samples
from triage_agent.docs_triage.folder import PageFolder
from triage_agent.docs_triage.tools import BODY_CHARACTERS, TITLE_CHARACTERS, DocsTools
from triage_agent.exceptions import TrackerError
from triage_agent.kinds import effect_key, is_not_performed, kind_of, reconcile_of
from triage_agent.trackers import Filed
from triage_agent.trackers.file import FileTracker
from triage_agent.trackers.opening import open_tracker
from triage_contract.states import ToolKind


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "issues.json"


def tools(path: Path, **options: Any) -> dict[str, BaseTool]:
    made = DocsTools(folder=PageFolder(samples.PAGES), tracker=FileTracker(path), **options).tools()
    return {tool.name: tool for tool in made}


async def context(*, session: str = "run-1", call: str | None = "call-1") -> ToolContext:
    service = InMemorySessionService()
    invocation = InvocationContext(
        session_service=service,
        invocation_id="inv-1",
        agent=LlmAgent(name="docs_triage"),
        session=await service.create_session(app_name="docs_triage", user_id="triage", session_id=session),
    )
    return ToolContext(invocation, function_call_id=call)


async def file(
    path: Path, where: ToolContext, *, title: Any = "Title", body: Any = "Body", **options: Any
) -> Any:
    filing = tools(path, **options)["file_issue"]
    return await filing.run_async(args={"title": title, "body": body}, tool_context=where)


def issues_in(path: Path) -> list[dict[str, Any]]:
    issues: list[dict[str, Any]] = json.loads(path.read_text())["issues"]
    return issues


def test_kinds_are_declared(path: Path) -> None:
    assert {name: kind_of(tool, {}) for name, tool in tools(path).items()} == {
        "list_pages": ToolKind.READ_ONLY,
        "read_page": ToolKind.READ_ONLY,
        "file_issue": ToolKind.IDEMPOTENT,
    }


def test_the_model_sees_what_it_may_choose(path: Path) -> None:
    declared = {name: tool._get_declaration() for name, tool in tools(path).items()}
    parameters = {
        name: list((declaration.parameters_json_schema or {}).get("properties", {})) if declaration else None
        for name, declaration in declared.items()
    }
    assert parameters == {"list_pages": [], "read_page": ["name"], "file_issue": ["title", "body"]}


async def test_pages_are_listed_and_read(path: Path) -> None:
    listed = await tools(path)["list_pages"].run_async(args={}, tool_context=await context())
    assert listed["pages"][-1] == {"name": "tokens", "title": "Tokens"}

    read = await tools(path)["read_page"].run_async(args={"name": "tokens"}, tool_context=await context())
    assert read["text"].startswith("# Tokens\n")


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "tokens\0", "\ud800", 7, None, ["tokens"], {}])
async def test_a_page_that_is_none_is_an_error_for_the_model(path: Path, name: Any) -> None:
    read = await tools(path)["read_page"].run_async(args={"name": name}, tool_context=await context())
    assert read["error"].startswith("there is no page ")
    assert read["error"].endswith("; list_pages names the pages")


async def test_an_issue_is_filed_under_session_and_call(path: Path) -> None:
    assert await file(path, await context(), title=" Tokens  do\nexpire ", body="\nSay so.\n") == {
        "number": 1
    }
    (issue,) = issues_in(path)
    assert (issue["key"], issue["title"], issue["body"]) == ("run-1/call-1", "Tokens do expire", "Say so.")


async def test_a_repeat_returns_the_number_it_has(path: Path) -> None:
    await file(path, await context(call="call-0"))
    first = await file(path, await context())
    again = await file(path, await context())

    assert first == {"number": 2}
    assert again == {"number": 2, "duplicate_request": True}


@pytest.mark.parametrize(
    ("session", "call"),
    [("run-1", "call-2"), ("run-2", "call-1"), ("run-1/call-1", "x"), ("run-1", "call-1/x")],
)
async def test_another_session_or_call_is_another_issue(path: Path, session: str, call: str) -> None:
    await file(path, await context())
    await file(path, await context(session="run-1%2Fcall-1", call="x"))
    filed = await file(path, await context(session=session, call=call))
    assert filed == {"number": 3}


@pytest.mark.parametrize("call", [None, ""])
async def test_nothing_is_filed_without_a_call_id(path: Path, call: str | None) -> None:
    filed = await file(path, await context(call=call))
    assert filed == {"error": "file_issue needs a function call id, and has none: nothing was filed"}
    assert not path.exists()


@pytest.mark.parametrize(
    ("title", "body", "problem"),
    [
        ("", "Body", "the title is empty"),
        (" \n ", "Body", "the title is empty"),
        (None, "Body", "the title is empty"),
        (["Title"], "Body", "the title is empty"),
        ("Title", "", "the body is empty"),
        ("Title", {"text": "Body"}, "the body is empty"),
        ("x" * (TITLE_CHARACTERS + 1), "Body", "the title has 257 characters, more than 256"),
        ("Title", "x" * (BODY_CHARACTERS + 1), "the body has 65001 characters, more than 65000"),
        ("Ti\0tle", "Body", "the title holds a NUL or half a surrogate pair"),
        ("Title", "Bo\ud83ddy", "the body holds a NUL or half a surrogate pair"),
    ],
)
async def test_an_issue_that_cannot_be_kept_is_refused(
    path: Path, title: Any, body: Any, problem: str
) -> None:
    filed = await file(path, await context(), title=title, body=body)
    assert filed == {"error": f"{problem}: nothing was filed"}
    assert not path.exists()


async def test_without_keys_every_repeat_files(path: Path) -> None:
    filed = [await file(path, await context(), keyed=False) for _ in range(2)]
    assert filed == [{"number": 1}, {"number": 2}]


async def test_after_write_finds_the_issue_filed(path: Path) -> None:
    seen: list[int] = []
    look: Callable[[], None] = lambda: seen.append(len(issues_in(path)))  # noqa: E731
    await file(path, await context(), after_write=look)
    assert seen == [1]


async def test_a_tracker_that_refuses_says_that_nothing_happened(path: Path) -> None:
    path.write_text("[]")
    with pytest.raises(TrackerError, match="is not a file of issues") as raised:
        await file(path, await context())
    assert is_not_performed(raised.value)


async def test_on_github_the_tool_tells_what_became_of_a_call() -> None:
    async with github() as there:
        tracker = open_tracker(
            f"github:{REPOSITORY}", database=None, run_id=None, github_token=TOKEN, github_url=there.url
        )
        made = DocsTools(folder=PageFolder(samples.PAGES), tracker=tracker).tools()
        filing = next(tool for tool in made if tool.name == "file_issue")
        where = await context()
        args = {"title": "Title", "body": "Body"}
        filed = await filing.run_async(args=args, tool_context=where)
        reconcile = reconcile_of(filing)

        assert kind_of(filing, {}) is ToolKind.RECONCILE
        assert reconcile is not None
        found = reconcile(args, effect_key(where), datetime.now(UTC))
        assert inspect.isawaitable(found)
        assert await found == filed == {"number": 1}


async def test_a_call_is_looked_for_from_its_own_time_on() -> None:
    asked_at: list[datetime | None] = []

    class Looking(FileTracker):
        async def file(self, key: str | None, title: str, body: str, **options: Any) -> Filed:
            asked_at.append(options["asked_at"])
            return Filed(number=1, duplicate=False)

    def calling(call: str, timestamp: float) -> Event:
        part = Part(function_call=FunctionCall(id=call, name="file_issue", args={}))
        return Event(author="docs_triage", timestamp=timestamp, content=Content(parts=[part]))

    made = DocsTools(folder=PageFolder(samples.PAGES), tracker=Looking(Path("unused"))).tools()
    filing = next(tool for tool in made if tool.name == "file_issue")
    where = await context()
    where.session.events += [calling("call-0", 1.0), calling("call-1", 2.0), calling("call-1", 3.0)]
    for call in ("call-1", "call-9"):
        where.function_call_id = call
        await filing.run_async(args={"title": "Title", "body": "Body"}, tool_context=where)

    assert asked_at == [datetime.fromtimestamp(2.0, UTC), None]
