"""What an attempt makes of a model's endpoint that does not answer, or not well."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from support.databases import Database, a_run
from support.killing import Agent
from support.model_endpoint import Answer, model_endpoint
from support.stage import Stage, an_app
from triage_agent.models import build_model
from triage_contract.names import AttemptEnv, DocsEnv
from triage_contract.states import ExitCode, Outcome
from triage_local.model.faults import Fault
from triage_local.model.server import ScriptedModel
from triage_local.ports import free_port


@pytest.mark.parametrize(
    ("fault", "outcome", "retry_after_seconds", "says"),
    [
        (Fault(status=400), Outcome.FAILED, None, "the model answered 400: INVALID_ARGUMENT: "),
        (Fault(status=403), Outcome.FAILED, None, "the model answered 403: PERMISSION_DENIED: "),
        (
            Fault(status=429, retry_after_seconds=7),
            Outcome.MODEL_UNAVAILABLE,
            7.0,
            "the model answered 429: RESOURCE_EXHAUSTED: ",
        ),
        (Fault(status=500), Outcome.MODEL_UNAVAILABLE, None, "the model answered 500: INTERNAL: "),
        (Fault(status=503), Outcome.MODEL_UNAVAILABLE, None, "the model answered 503: UNAVAILABLE: "),
    ],
    ids=["400", "403", "429", "500", "503"],
)
async def test_an_error_of_the_endpoint_ends_the_attempt_and_the_next_asks_again(
    database: Database,
    agent: Agent,
    model: ScriptedModel,
    fault: Fault,
    outcome: Outcome,
    retry_after_seconds: float | None,
    says: str,
) -> None:
    model.faults.add(fault.model_copy(update={"step": "read_page"}))
    run = a_run()
    attempt = await database.open(run)
    assert await agent.work(run, attempt) == ExitCode.FAILED
    ((recorded, error, retry),) = await database.values(
        "SELECT outcome, error, retry_after_seconds FROM triage.attempts"
    )
    assert (recorded, retry) == (outcome, retry_after_seconds)
    assert str(error).startswith(says)

    attempt = await database.open(run, observed_epoch=attempt.epoch)
    assert await agent.work(run, attempt) == ExitCode.FINISHED
    assert len(model.requests) == 5


async def test_an_endpoint_that_nobody_listens_at_is_unavailable(
    database: Database, agent: Agent, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    nowhere: dict[str, str] = {
        DocsEnv.MODEL_BASE_URL: f"http://127.0.0.1:{free_port()}",
        AttemptEnv.TERMINATION_LOG: str(told),
    }
    run = a_run()
    attempt = await database.open(run)
    assert await replace(agent, environment=nowhere).work(run, attempt) == ExitCode.FAILED
    assert await database.values("SELECT outcome FROM triage.attempts") == [("model_unavailable",)]
    message = json.loads(told.read_text())["message"]
    assert message.startswith("the model did not answer: UNAVAILABLE: ")


# The real client is in this process here, and warns of itself.
async def test_an_endpoint_that_says_nothing_is_unavailable(stage: Stage) -> None:
    async with model_endpoint(Answer(body=None)) as endpoint:
        model = build_model("any", base_url=endpoint.url, api_key="no-key", timeout_seconds=0.5)
        ending = await stage.attempt(an_app(model))
    assert ending.outcome is Outcome.MODEL_UNAVAILABLE
    assert ending.message.startswith("the model did not answer: DEADLINE_EXCEEDED: ")
