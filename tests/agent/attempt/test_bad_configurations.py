"""What an attempt says of settings, apps and databases that it cannot work with."""

import asyncio
import json
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from support.command import triage
from support.databases import Database, a_run
from support.killing import Agent
from triage_agent.attempt.process import run_attempt
from triage_contract.names import AttemptEnv, DocsEnv
from triage_contract.states import ExitCode, Outcome
from triage_contract.termination import TerminationMessage
from triage_local.postgres import PostgresServer

RUN = a_run()


@pytest.fixture(autouse=True)
def _own_signal_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def told(tmp_path: Path) -> Path:
    return tmp_path / "termination-log"


@pytest.fixture
def environment(told: Path) -> dict[str, str]:
    """Everything that an attempt needs; there is no database behind it."""
    return {
        AttemptEnv.RUN_ID: str(RUN.id),
        AttemptEnv.EPOCH: "1",
        AttemptEnv.TOKEN: "token-of-this-attempt",
        AttemptEnv.DATABASE_URL: "postgresql://user:hidden@127.0.0.1:1/none",
        AttemptEnv.APP: "support.odd_apps:waiting",
        AttemptEnv.TERMINATION_LOG: str(told),
    }


def message(told: Path) -> TerminationMessage:
    message = TerminationMessage.from_json(told.read_text())
    assert message is not None
    return message


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        (AttemptEnv.RUN_ID, "", "TRIAGE_RUN_ID is not set"),
        (AttemptEnv.RUN_ID, "7", "TRIAGE_RUN_ID is not a UUID"),
        (AttemptEnv.EPOCH, "", "TRIAGE_EPOCH is not set"),
        (AttemptEnv.EPOCH, "one", "TRIAGE_EPOCH is 'one', not a number"),
        (AttemptEnv.EPOCH, "1.5", "TRIAGE_EPOCH is 1.5, not an integer"),
        (AttemptEnv.TOKEN, "", "TRIAGE_TOKEN is not set"),
        (AttemptEnv.DATABASE_URL, "", "TRIAGE_DATABASE_URL is not set"),
        (AttemptEnv.DATABASE_URL, "mysql://user:hidden@host/db", "begins with 'mysql'"),
        (AttemptEnv.DATABASE_URL, "hidden", "cannot be read"),
        (AttemptEnv.DATABASE_POOLER, "session", "TRIAGE_DATABASE_POOLER is 'session'"),
        (AttemptEnv.APP, "", "TRIAGE_APP is not set"),
        (AttemptEnv.TOOLS, '{"a": "Sometimes"}', "TRIAGE_TOOLS is not a JSON object"),
        (AttemptEnv.TOOLS, "[]", "TRIAGE_TOOLS is not a JSON object"),
        (AttemptEnv.GRACE_SECONDS, "-1", "TRIAGE_GRACE_SECONDS is '-1'"),
        (AttemptEnv.HEARTBEAT_SECONDS, "0", "TRIAGE_HEARTBEAT_SECONDS is '0'"),
        (AttemptEnv.HEARTBEAT_SECONDS, "nan", "TRIAGE_HEARTBEAT_SECONDS is 'nan'"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named(
    environment: dict[str, str], told: Path, variable: str, value: str, says: str
) -> None:
    assert run_attempt({**environment, variable: value}) == ExitCode.BAD_CONFIGURATION
    assert message(told).outcome is Outcome.BAD_CONFIGURATION
    assert says in message(told).message
    assert "hidden" not in message(told).message


def test_a_database_that_is_not_there_is_waited_for_elsewhere(
    environment: dict[str, str], told: Path
) -> None:
    assert run_attempt(environment) == ExitCode.DATABASE_UNREACHABLE
    assert message(told).outcome is None
    assert message(told).message.startswith("127.0.0.1:1/none: ")
    assert "hidden" not in message(told).message


def test_a_database_without_our_tables_is_named(
    environment: dict[str, str], told: Path, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    assert run_attempt({**environment, AttemptEnv.DATABASE_URL: url}) == ExitCode.BAD_CONFIGURATION
    assert message(told).message.endswith("run `triage-operator migrate`")
    assert str(make_url(url).password) not in told.read_text()


def test_a_wrong_password_is_refused_and_shown_nowhere(
    environment: Mapping[str, str], told: Path, postgres: PostgresServer
) -> None:
    url = make_url(postgres.url()).set(password="the-wrong-one")
    ended = triage(
        "attempt",
        environment={**environment, AttemptEnv.DATABASE_URL: url.render_as_string(hide_password=False)},
    )
    assert ended.code == ExitCode.DATABASE_UNREACHABLE
    assert "refused the credentials" in message(told).message
    shown = ended.out + ended.err + told.read_text()
    assert "the-wrong-one" not in shown
    assert environment[AttemptEnv.TOKEN] not in shown
    lines = [json.loads(line) for line in ended.err.splitlines()]
    assert lines[-1]["message"] == "attempt ended"
    assert lines[-1]["exit_code"] == ExitCode.DATABASE_UNREACHABLE


async def refused(database: Database, agent: Agent, told: Path, **environment: str) -> str:
    """Run an attempt that ends for its configuration, and give what it says."""
    agent = replace(agent, environment={AttemptEnv.TERMINATION_LOG: str(told), **environment})
    run = a_run()
    assert await agent.work(run, await database.open(run)) == ExitCode.BAD_CONFIGURATION
    assert message(told).outcome is Outcome.BAD_CONFIGURATION
    return message(told).message


@pytest.mark.parametrize(
    ("app", "says"),
    [
        ("odd_apps", "expected `module:attribute`"),
        ("nowhere.at_all:app", "there is no module 'nowhere'"),
        ("support.odd_apps:nothing", "module 'support.odd_apps' has no 'nothing'"),
        ("support.odd_apps:NO_APP", "is an object, not a google.adk.apps.App"),
        ("support.broken_app:app", "the import raised RuntimeError: postgresql://***@host/db is away"),
        ("support.leaving_app:app", "the import raised SystemExit: 0"),
        ("support.odd_apps:unsafe", "'custom'"),
    ],
)
async def test_an_app_that_cannot_be_run_is_recorded_with_what_is_wrong(
    database: Database, agent: Agent, told: Path, app: str, says: str
) -> None:
    line = await refused(database, agent, told, **{AttemptEnv.APP: app})
    assert says in line
    ((outcome, error, token),) = await database.values(
        "SELECT a.outcome, a.error, f.token FROM triage.attempts a, triage.fences f"
    )
    assert (outcome, error, token) == ("bad_configuration", line, None)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        (DocsEnv.PATH, "/nowhere", "/nowhere"),
        (DocsEnv.MODEL, "record:/nowhere/f:gemini-3.5-flash", "DOCS_MODEL"),
        (DocsEnv.TRACKER, "jira", "DOCS_TRACKER"),
    ],
)
async def test_a_setting_of_the_docs_agent_is_recorded_with_what_is_wrong(
    database: Database, agent: Agent, told: Path, variable: str, value: str, says: str
) -> None:
    assert says in await refused(database, agent, told, **{variable: value})
    assert (await database.values("SELECT outcome FROM triage.attempts")) == [("bad_configuration",)]


async def test_a_database_without_the_fences_trigger_is_refused_before_the_claim(
    database: Database, agent: Agent, told: Path
) -> None:
    await database.values("DROP TRIGGER triage_guard ON public.events")
    assert "no fence trigger" in await refused(database, agent, told)
    assert await database.values("SELECT claimed_at FROM triage.attempts") == [(None,)]


async def test_what_nobody_thought_of_is_logged_without_secrets(
    database: Database, environment: dict[str, str]
) -> None:
    run = a_run()
    attempt = await database.open(run)
    changed: dict[str, str] = {
        AttemptEnv.RUN_ID: str(run.id),
        AttemptEnv.TOKEN: attempt.token,
        AttemptEnv.DATABASE_URL: database.url.dsn,
        AttemptEnv.APP: "support.odd_apps:breaking",
    }
    ended = await asyncio.to_thread(triage, "attempt", environment={**environment, **changed})
    assert ended.code == 1
    last = [json.loads(line) for line in ended.err.splitlines()][-1]
    assert (last["message"], last["error"]) == (
        "unexpected error",
        "ZeroDivisionError('postgresql://***@host/db')",
    )
    assert "hidden" not in ended.err
    assert attempt.token not in ended.err
