"""Passwords, keys and tokens: nothing that anybody reads has one in it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest
from sqlalchemy.engine import make_url

from support.own_agents import own_agent
from support.site import API_KEY, Site
from support.system import System
from triage_contract.states import Phase

pytestmark = pytest.mark.asyncio(loop_scope="session")

WRONG_PASSWORD: Final = "wr0ng-passw0rd"
TOKEN_VARIABLE: Final = "TRIAGE_TOKEN"


async def test_no_secret_is_shown_anywhere(system: System, site: Site) -> None:
    url = make_url(site.cluster.database_url)
    wrong = url.set(password=WRONG_PASSWORD).render_as_string(hide_password=False)
    nowhere = f"postgresql://triage:{WRONG_PASSWORD}@127.0.0.1:1/triage"
    secrets = {"wrong-password": wrong, "wrong-address": nowhere, "no-url": f"mysql//{WRONG_PASSWORD}@db"}
    for name, value in secrets.items():
        await site.create_secret(name, {"url": value})
        await site.create_agent(name, database={"urlSecretRef": {"name": name, "key": "url"}})
        await site.create_run(name, agentRef={"name": name})
    await site.create_agent("telling", **own_agent("telling"), resume={"maxNoProgress": 1})
    await site.create_run("telling", agentRef={"name": "telling"})
    await site.create_run("good")
    for name in ("wrong-password", "wrong-address"):
        await site.until(name, _waits_for_the_database, "waits for the database")
    assert (await site.ended("no-url"))["phase"] == Phase.FAILED
    assert "TRIAGE_DATABASE_URL" in await site.finished_because("no-url")
    assert (await site.ended("telling"))["phase"] == Phase.FAILED
    await site.succeeded("good")

    pods = list(site.pods.objects.values())
    tokens = [
        variable["value"]
        for pod in pods
        for variable in _variables(pod)
        if variable["name"] == TOKEN_VARIABLE
    ]
    assert len(tokens) == len(pods)
    assert url.password is not None
    hidden = (url.password, WRONG_PASSWORD, API_KEY, *tokens)
    shown = {
        "the operator's log": site.cluster.operator.log.read_text(),
        "the metrics": await site.cluster.operator.metrics(),
        "the database": json.dumps([list(map(str, row)) for row in await _told_rows(system, site)]),
        **{f"run {name}": json.dumps(run) for name, run in site.runs.objects.items()},
        **{f"event {name}": json.dumps(event) for name, event in site.said.objects.items()},
    }
    for pod in pods:
        name = pod["metadata"]["name"]
        shown[f"the status of {name}"] = json.dumps(pod["status"])
        shown[f"the log of {name}"] = site.cluster.kubelet.container(site.namespace, name).log.read_text()
    found = [(where, secret[:8]) for where, said in shown.items() for secret in hidden if secret in said]
    assert found == []
    # What was mended goes on.
    await site.patch_secret("wrong-password", {"url": site.cluster.database_url})
    status = await site.ended("wrong-password")
    await site.succeeded("wrong-password", ["no_database"] * (len(status["attempts"]) - 1))


async def _told_rows(system: System, site: Site) -> list[tuple[Any, ...]]:
    return await system.values(
        "SELECT r.reason, a.error FROM triage.runs r LEFT JOIN triage.attempts a ON a.run_id = r.id"
        " WHERE r.namespace = :namespace",
        namespace=site.namespace,
    )


def _waits_for_the_database(run: Mapping[str, Any]) -> bool | None:
    attempts = (run.get("status") or {}).get("attempts") or []
    return any(one.get("cause") == "no_database" for one in attempts) or None


def _variables(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for container in pod["spec"]["containers"]:
        yield from container.get("env") or []
