"""The agent as a whole: built from settings, run by ADK, recorded and replayed."""

import importlib
import json
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

from triage_agent.docs_triage import agent, samples
from triage_agent.docs_triage.agent import build_app, compose_app
from triage_agent.docs_triage.folder import PageFolder
from triage_agent.docs_triage.settings import DocsSettings
from triage_agent.docs_triage.tools import DocsTools
from triage_agent.exceptions import ConfigurationError
from triage_agent.models.recording import RecordingModel
from triage_agent.models.replaying import ReplayModel
from triage_agent.trackers.file import FileTracker


class TriagingModel(BaseLlm):
    """Reads the page named like the report's second word, files an issue and says its number."""

    model: str = "triaging"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        results = [
            part.function_response
            for content in llm_request.contents
            for part in content.parts or []
            if part.function_response
        ]
        match len(results):
            case 0:
                part = Part.from_function_call(name="list_pages", args={})
            case 1:
                part = Part.from_function_call(name="read_page", args={"name": "tokens"})
            case 2:
                part = Part.from_function_call(name="file_issue", args={"title": "Tokens", "body": "Expire."})
            case _:
                part = Part(text=f"Filed as issue {(results[-1].response or {}).get('number')}.")
        yield LlmResponse(content=Content(role="model", parts=[part]))


def app(model: BaseLlm, issues: Path) -> App:
    return compose_app(model, DocsTools(folder=PageFolder(samples.PAGES), tracker=FileTracker(issues)))


async def run(app: App) -> list[Any]:
    """Run the agent on a report; return tool results and text in order."""
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name=app.name, user_id="triage")
    message = Content(role="user", parts=[Part(text=samples.report("tokens"))])
    said: list[Any] = []
    async for event in runner.run_async(user_id="triage", session_id=session.id, new_message=message):
        said += [response.response for response in event.get_function_responses()]
        said += [part.text for part in (event.content.parts or [] if event.content else []) if part.text]
    await runner.close()
    return said


async def test_a_report_becomes_an_issue(tmp_path: Path) -> None:
    listed, page, filed, text = await run(app(TriagingModel(), tmp_path / "issues.json"))

    assert {"name": "tokens", "title": "Tokens"} in listed["pages"]
    assert "never expire" in page["text"]
    assert filed == {"number": 1}
    assert text == "Filed as issue 1."
    (issue,) = json.loads((tmp_path / "issues.json").read_text())["issues"]
    assert issue["title"] == "Tokens"


async def test_a_recorded_run_is_replayed_against_another_tracker(tmp_path: Path) -> None:
    recording = tmp_path / "replies.jsonl"
    recorder = RecordingModel(model="triaging", inner=TriagingModel(), path=recording)
    recorded = await run(app(recorder, tmp_path / "issues.json"))
    other = tmp_path / "other.json"
    await FileTracker(other).file(None, "An issue", "that was there before")

    replayed = await run(app(ReplayModel(path=recording), other))

    assert replayed[:2] == recorded[:2]
    assert replayed[2] == {"number": 2}
    assert len(recording.read_text().splitlines()) == 4


def test_the_app_is_resumable(tmp_path: Path) -> None:
    made = app(TriagingModel(), tmp_path / "issues.json")
    assert made.name == "docs_triage"
    assert made.resumability_config
    assert made.resumability_config.is_resumable


class TestFromTheEnvironment:
    """``triage_agent.docs_triage.agent:app``, which an agent's pod imports."""

    @pytest.fixture
    def environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        """Settings that work, and nothing else of ours."""
        for name in list(os.environ):
            if name.startswith(("DOCS_", "TRIAGE_", "GOOGLE_", "GEMINI_")):
                monkeypatch.delenv(name)
        (tmp_path / "replies.jsonl").touch()
        return {
            "DOCS_MODEL": f"replay:{tmp_path / 'replies.jsonl'}",
            "DOCS_TRACKER": f"file:{tmp_path / 'issues.json'}",
        }

    def test_the_attribute_is_built_once(
        self, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        module = importlib.reload(agent)

        assert isinstance(module.app, App)
        assert module.app is module.app

    def test_importing_the_module_needs_no_settings(
        self, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DOCS_PATH", "/nowhere")
        module = importlib.reload(agent)

        with pytest.raises(ConfigurationError, match="DOCS_PATH: there is no folder /nowhere"):
            _ = module.app

    def test_another_attribute_is_missing_as_usual(self) -> None:
        with pytest.raises(AttributeError, match="has no attribute 'application'"):
            _ = agent.application

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"DOCS_PATH": "/nowhere"}, r"DOCS_PATH: there is no folder /nowhere"),
            ({"DOCS_TRACKER": "jira"}, r"DOCS_TRACKER is 'jira': expected"),
            (
                {"DOCS_TRACKER": "postgres"},
                r"DOCS_TRACKER is 'postgres', which needs a postgresql:// URL in DOCS_DB",
            ),
            ({"DOCS_TRACKER": "github:acme/docs"}, r"which needs DOCS_GITHUB_TOKEN"),
            ({"DOCS_MODEL": "gpt-4o"}, r"DOCS_MODEL is 'gpt-4o': expected a Gemini model"),
            (
                {"DOCS_MODEL": ""},
                r"DOCS_MODEL is 'gemini-3\.5-flash', which needs a key: set DOCS_MODEL_API_KEY",
            ),
            ({"DOCS_DB": "mysql://db/x?password=hunter2"}, r"DOCS_DB: the database URL begins with 'mysql'"),
            (
                {"TRIAGE_DATABASE_URL": "postgresql://db:x/?password=hunter2"},
                r"TRIAGE_DATABASE_URL: .* cannot be read",
            ),
            (
                {"DOCS_DB": "postgresql://db/x", "TRIAGE_DATABASE_POOLER": "session"},
                r"TRIAGE_DATABASE_POOLER is 'session': expected 'transaction'",
            ),
            ({"TRIAGE_RUN_ID": "run-1"}, r"TRIAGE_RUN_ID is 'run-1', not a UUID"),
        ],
    )
    def test_a_wrong_setting_gets_one_line_that_names_it(
        self, environment: dict[str, str], changed: dict[str, str], message: str
    ) -> None:
        with pytest.raises(ConfigurationError, match=message) as raised:
            build_app(DocsSettings.from_environment(environment | changed))
        assert "\n" not in str(raised.value)
        assert "hunter2" not in str(raised.value)

    def test_defaults(self) -> None:
        settings = DocsSettings.from_environment({})
        assert settings == DocsSettings(
            model="gemini-3.5-flash", pages=samples.PAGES, tracker="file:issues.json"
        )

    @pytest.mark.parametrize(
        ("url", "tracker"),
        [("postgresql://db/sessions", "postgres"), ("sqlite:///sessions.db", "file:issues.json")],
    )
    def test_issues_go_beside_the_sessions_unless_told_otherwise(self, url: str, tracker: str) -> None:
        assert DocsSettings.from_environment({"DOCS_DB": url}).tracker == tracker

    def test_secrets_are_not_shown(self) -> None:
        settings = DocsSettings.from_environment(
            {"DOCS_MODEL_API_KEY": "hunter2", "DOCS_GITHUB_TOKEN": "hunter2\n"}
        )
        assert settings.model_api_key == settings.github_token == "hunter2"
        assert "hunter2" not in repr(settings)
