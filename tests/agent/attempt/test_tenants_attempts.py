"""Attempts that know the database by their namespace's credential alone."""

import asyncio
import os
import signal
from dataclasses import replace

import pytest

from support.databases import a_run
from support.killing import Agent, At, ended, stopped
from support.tenancy import Tenancy, tenancy
from triage_agent.docs_triage.samples import report
from triage_contract.names import LIFE_LOCK_CLASS, AttemptEnv
from triage_contract.states import ExitCode
from triage_local.model.server import ScriptedModel
from triage_operator import tenants
from triage_operator.store import Store

__all__ = ["tenancy"]

REPORT = report("tokens")


@pytest.fixture
async def tenants_agent(tenancy: Tenancy, model: ScriptedModel) -> Agent:
    """Processes of the docs-triage agent with the credential of namespace ``docs``."""
    environment = {str(AttemptEnv.DATABASE_URL): await tenancy.admit("docs")}
    return Agent(database=tenancy.database, model_url=model.url, environment=environment)


@pytest.mark.parametrize(
    "place",
    [
        At(when="after", step="claim", nth=1),
        At(when="after", step="begin_call", nth=3),
        At(when="after", step="effect", nth=1),
        At(when="before", step="append_event", nth=8),
    ],
    ids=str,
)
async def test_killed_a_tenants_run_is_finished_by_its_next_attempt(
    tenancy: Tenancy, tenants_agent: Agent, place: At
) -> None:
    run = a_run(REPORT)
    first = await tenancy.database.open(run)
    assert await tenants_agent.work(run, first, place) == -signal.SIGKILL
    await tenancy.database.close(run, first.epoch)
    second = await tenancy.database.open(run, observed_epoch=first.epoch)
    assert await tenants_agent.work(run, second) == ExitCode.FINISHED
    assert await tenancy.database.values("SELECT count(*) FROM triage.issues") == [(1,)]


async def test_another_namespaces_credential_cannot_take_a_run_with_its_token(
    tenancy: Tenancy, model: ScriptedModel
) -> None:
    environment = {str(AttemptEnv.DATABASE_URL): await tenancy.admit("other")}
    run = a_run(REPORT)
    attempt = await tenancy.database.open(run)
    agent = Agent(database=tenancy.database, model_url=model.url, environment=environment)
    assert await agent.work(run, attempt) == ExitCode.FENCED
    assert await tenancy.database.values("SELECT claimed_at FROM triage.attempts") == [(None,)]


async def test_a_tenants_frozen_backend_does_not_hold_up_an_operator_that_is_no_superuser(
    tenancy: Tenancy, tenants_agent: Agent
) -> None:
    run = a_run(REPORT)
    first = await tenancy.database.open(run)
    process = tenants_agent.start(
        run, first, At(when="after", step="append_event", nth=3, number=signal.SIGSTOP)
    )
    assert process.pid is not None
    await stopped(process.pid)
    frozen = await tenancy.connect(tenants_agent.environment[AttemptEnv.DATABASE_URL])
    await frozen.execute(f"SET application_name = 'triage-agent/{first.serial}'")
    await frozen.execute("BEGIN")
    await frozen.fetch("SELECT * FROM triage.read_session($1, $2)", first.serial, first.token)
    cut = asyncio.Event()
    frozen.add_termination_listener(lambda _connection: cut.set())

    assert await tenancy.database.close(run, first.epoch)

    await asyncio.wait_for(cut.wait(), 10)
    second = await tenancy.database.open(run, observed_epoch=first.epoch)
    assert await tenants_agent.work(run, second) == ExitCode.FINISHED
    os.kill(process.pid, signal.SIGCONT)
    assert await ended(process) == ExitCode.FENCED


async def test_a_lock_that_another_namespaces_tenant_took_stops_no_attempt_and_feigns_no_life(
    tenancy: Tenancy, tenants_agent: Agent
) -> None:
    run = a_run(REPORT)
    first = await tenancy.database.open(run)
    thief = await tenancy.connect(await tenancy.admit("other"))
    await thief.execute(f"SELECT pg_advisory_lock({LIFE_LOCK_CLASS}, {first.serial})")
    place = At(when="after", step="append_event", nth=3)
    assert await tenants_agent.work(run, first, place) == -signal.SIGKILL

    store = Store(tenancy.database.url, run.cluster_id, pool_size=1)
    assert (await store.look(lapse_seconds=15)).free == {first.serial}
    await store.close()

    await tenancy.database.close(run, first.epoch)
    second = await tenancy.database.open(run, observed_epoch=first.epoch)
    assert await tenants_agent.work(run, second) == ExitCode.FINISHED


async def test_an_attempt_that_loses_its_password_is_finished_by_one_with_the_new(
    tenancy: Tenancy, tenants_agent: Agent
) -> None:
    run = a_run(REPORT)
    first = await tenancy.database.open(run)
    place = At(when="after", step="append_event", nth=3, number=signal.SIGSTOP)
    process = tenants_agent.start(run, first, place)
    assert process.pid is not None
    await stopped(process.pid)
    rotated = await tenants.add(
        tenancy.database.url, "docs", role=tenancy.role("docs"), connection_limit=None, rotate=True
    )
    assert rotated.url is not None
    os.kill(process.pid, signal.SIGCONT)
    assert await ended(process) == ExitCode.DATABASE_UNREACHABLE

    await tenancy.database.close(run, first.epoch)
    second = await tenancy.database.open(run, observed_epoch=first.epoch)
    successor = replace(tenants_agent, environment={str(AttemptEnv.DATABASE_URL): rotated.url})
    assert await successor.work(run, second) == ExitCode.FINISHED
