"""An operator that does not own the schema, with the rights that the documentation names."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from support.databases import a_run
from support.tenancy import Tenancy, tenancy
from triage_contract.database.fence import NewAttempt
from triage_contract.database.url import DatabaseUrl
from triage_contract.states import Cause, Outcome, RunState, Verdict
from triage_local.postgres import PostgresServer
from triage_operator.store import Store
from triage_operator.stored import End

__all__ = ["tenancy"]

PAGE = Path(__file__).parents[2] / "docs" / "database-roles.md"
NEW = NewAttempt(pod="pod", image=None, memory_limit_bytes=None)


@pytest.fixture
async def store(tenancy: Tenancy, postgres: PostgresServer) -> AsyncIterator[Store]:
    """The operator's statements as a role that has the page's rights, and no others."""
    role = tenancy.role("operator")
    url = make_url(tenancy.database.url.dsn)
    (rights,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    superuser = await tenancy.connect(postgres.url(str(url.database)))
    await superuser.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'known'")
    await superuser.execute(rights.replace("triage_operator", role))
    dsn = url.set(username=role, password="known").render_as_string(hide_password=False)
    store = Store(DatabaseUrl.parse(dsn), "cluster", pool_size=4)
    yield store
    await store.close()
    await superuser.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


async def test_the_rights_of_the_page_are_enough_to_take_a_run_from_a_frozen_tenant_and_end_it(
    tenancy: Tenancy, store: Store
) -> None:
    run = a_run()
    attempt = await store.open_attempt(run, observed_epoch=0, attempt=NEW)
    frozen = await tenancy.connect(await tenancy.admit("docs"))
    await frozen.execute("SELECT triage.claim($1, $2)", attempt.serial, attempt.token)
    await frozen.execute(
        "SELECT triage.open_session($1, $2, now()::timestamp)", attempt.serial, attempt.token
    )
    await frozen.execute(
        "SELECT triage.append_event($1, $2, update_time, 'id', $3, now()::timestamp, $4, NULL, NULL, NULL)"
        " FROM sessions",
        attempt.serial,
        attempt.token,
        run.invocation_id,
        '{"id": "id", "author": "user", "content": {"parts": [{"text": "The tokens page is wrong."}]}}',
    )
    await frozen.execute("BEGIN")
    await frozen.execute("SELECT triage.calls_of($1, $2)", attempt.serial, attempt.token)
    cut = asyncio.Event()
    frozen.add_termination_listener(lambda _connection: cut.set())

    await store.close_fence(run.session, attempt.epoch)

    await asyncio.wait_for(cut.wait(), 10)
    await store.end_attempt(
        End(
            serial=attempt.serial,
            outcome=Outcome.LOST,
            cause=Cause.NODE_LOST,
            counted=True,
            exit_code=None,
            confirmed=False,
            message="The node is lost.",
        )
    )
    records = await store.read(run)
    assert records.judgement is not None
    assert records.judgement.verdict is Verdict.INTERRUPTED
    await store.open_attempt(run, observed_epoch=attempt.epoch, attempt=NEW)
    await store.count_recoveries()
    await store.look(lapse_seconds=15)
    await store.end_run(run, state=RunState.CANCELLED, reason="cancelled", recorded="cancelled")
    assert await store.active_runs() == ()
