"""The reports that come with the agent, triaged through the real Gemini client and Postgres."""

import pytest
from google.adk.models.google_llm import Gemini
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

from triage_agent.docs_triage import samples
from triage_agent.docs_triage.agent import build_app
from triage_agent.docs_triage.settings import DocsSettings
from triage_contract.database.migrating import migrate
from triage_contract.database.url import DatabaseUrl
from triage_local.model import ScriptedModel
from triage_local.postgres import PostgresServer


@pytest.mark.parametrize("name", samples.report_names())
async def test_a_report_leads_to_its_page_and_to_one_issue(name: str, postgres: PostgresServer) -> None:
    database = DatabaseUrl.parse(postgres.create_database())
    await migrate(database)
    async with ScriptedModel() as endpoint:
        settings = {
            "DOCS_MODEL": "gemini-scripted",
            "DOCS_MODEL_BASE_URL": endpoint.url,
            "DOCS_MODEL_API_KEY": "none",
            "DOCS_DB": database.dsn,
        }
        app = build_app(DocsSettings.from_environment(settings))
        runner = InMemoryRunner(app=app)
        session = await runner.session_service.create_session(app_name=app.name, user_id="triage")
        message = Content(role="user", parts=[Part(text=samples.report(name))])
        events = [
            event
            async for event in runner.run_async(user_id="triage", session_id=session.id, new_message=message)
        ]
        await runner.close()
        model = app.root_agent.model  # type: ignore[union-attr]
        assert isinstance(model, Gemini)
        await model.api_client.aio.aclose()

    calls = [call for event in events for call in event.get_function_calls()]
    results = [result.response for event in events for result in event.get_function_responses()]
    assert [call.name for call in calls] == ["list_pages", "read_page", "file_issue"]
    assert calls[1].args == {"name": name}
    assert results[-1] == {"number": 1}
