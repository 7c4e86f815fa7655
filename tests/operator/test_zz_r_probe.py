import asyncio
import json

import asyncpg
import pytest

from support.databases import a_run
from support.tenancy import Tenancy, tenancy
from triage_contract.states import Outcome, Cause
from triage_operator.store import End, Store

__all__ = ["tenancy"]


async def test_poison(tenancy: Tenancy) -> None:
    run = a_run()
    attempt = await tenancy.database.open(run)
    thief = await tenancy.connect(await tenancy.admit("docs"))
    store = Store(tenancy.database.url, "cluster", pool_size=4)
    for root in ('{"name":"a","kind":"llm","tools": 5}', '"x"', '5', '[]', 'null', '{"name":"a","kind":"llm","tools": {"a":{}}}'):
        try:
            await tenancy.database.values("UPDATE triage.runs SET root = NULL")
            await thief.execute("SELECT triage.record_root($1,$2,$3)", attempt.serial, attempt.token, root)
            print(root, await store.agent_facts("docs", "default"))
        except Exception as e:
            print(root, repr(e)[:200])
    await store.close()


async def test_lock(tenancy: Tenancy) -> None:
    run = a_run()
    attempt = await tenancy.database.open(run)
    thief = await tenancy.connect(await tenancy.admit("docs"))
    await thief.execute("SELECT triage.claim($1,$2)", attempt.serial, attempt.token)
    await tenancy.database.close(run, 1)
    attempt = await tenancy.database.open(run, observed_epoch=1)
    store = Store(tenancy.database.url, "cluster", pool_size=4)
    await thief.execute("SET idle_in_transaction_session_timeout=0; BEGIN")
    print(await thief.fetch("SELECT triage.heartbeat($1,$2,1,false)", attempt.serial, attempt.token))
    print("closing")
    async with asyncio.timeout(15):
        await store.close_fence(run.session, 2)
    print("closed", thief.is_closed())
    end = End(serial=attempt.serial, outcome=Outcome.LOST, cause=Cause.OOM, counted=True, exit_code=None, confirmed=True, message="m")
    try:
        async with asyncio.timeout(15):
            await store.end_attempt(end)
        print("ended")
    except BaseException as e:
        print("END", repr(e)[:200])
    await store.close()
