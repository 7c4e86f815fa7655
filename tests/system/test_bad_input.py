"""What bad input gets: a condition, an Event or an error that names it; and nothing is lost once it is mended."""

from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.own_agents import own_agent
from support.site import Site
from support.system import System
from triage_agent.docs_triage.tools import BODY_CHARACTERS
from triage_contract.api.run import MAX_REPORT_LENGTH
from triage_contract.states import Phase
from triage_local.kubelet.exceptions import ClusterError
from triage_local.model import Fault
from triage_local.ports import free_port

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"report": ""}, "spec.report"),
        ({"report": " \n"}, "report must not be blank"),
        ({"report": "x" * (MAX_REPORT_LENGTH + 1)}, "spec.report: Too long"),
        ({"report": "a\0b"}, "report must hold no NUL"),
        ({"report": "x", "agentRef": {"name": "No Name"}}, "spec.agentRef.name"),
    ],
)
async def test_a_run_that_cannot_be_is_refused_by_field(site: Site, spec: dict[str, Any], said: str) -> None:
    with pytest.raises(ClusterError, match=said):
        await site.create_run("refused", **spec)


async def test_the_longest_name_and_a_report_as_long_as_an_issue_can_be_in_any_script(site: Site) -> None:
    name = "long-name." * 25 + "end"
    report = ("Die Seite über „Tokens“ ist falsch: トークンは90日で切れる。 🔑 " * 2000)[
        : BODY_CHARACTERS - 256
    ]
    assert len(name) == 253
    await site.create_run(name, report=report)
    status = await site.succeeded(name)
    assert len(status["attempts"][0]["pod"]) <= 63


async def test_an_unknown_agent_a_foreign_pod_and_a_status_by_hand(system: System, site: Site) -> None:
    await site.create_run("early", agentRef={"name": "later"})
    assert f"{site.namespace}/later" in await site.held_up("early", "UnknownAgent")
    name = f"early-{str(site.uid('early'))[:5]}-a1"
    container = {"name": "agent", "image": "registry.invalid/theirs:1"}
    spec = {"containers": [container], "nodeName": "nowhere"}
    await site.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    await site.overwrite_status("early", phase="Succeeded", issue="99", attempt=7)
    await site.create_agent("later")
    await site.phase("early", Phase.RUNNING)
    status = await site.succeeded("early")
    assert status["attempts"][0]["pod"] == f"{name}-2"
    theirs = await site.cluster.api.request("GET", site.path("Pod", name))
    assert "deletionTimestamp" not in theirs["metadata"]
    await site.told("early", "UnknownAgent", "ForeignPod", "Completed")
    await site.delete("Pod", name, grace_seconds=0)


async def test_a_missing_secret_or_key_is_named_and_may_come_later(site: Site) -> None:
    model = dict(site.cluster.agent["spec"]["model"])
    for agent, secret in (("no-secret", "later"), ("no-key", "partial")):
        await site.create_agent(agent, model={**model, "apiKeySecretRef": {"name": secret, "key": "the-key"}})
        await site.create_run(agent, agentRef={"name": agent})
    await site.create_secret("partial", {"another-key": "some"})
    assert '"later"' in await site.held_up("no-secret", "StartBlocked")
    assert "the-key" in await site.held_up("no-key", "StartBlocked")
    await site.create_secret("later", {"the-key": "key-of-the-model"})
    await site.change("TriageRun", "no-key", cancel=True)
    await site.succeeded("no-secret")
    assert (await site.ended("no-key"))["phase"] == Phase.CANCELLED


@pytest.mark.parametrize(
    ("app", "said"),
    [
        ("system.apps.broken:app", "RuntimeError: the settings of the warehouse are missing"),
        ("system.apps.missing:app", "there is no module 'system.apps.missing'"),
        ("system.apps.no_app:app", "a dict, not a google.adk.apps.App"),
        ("system.apps.unsafe:app", "agent 'steps' cannot be resumed safely"),
    ],
)
async def test_an_app_that_cannot_be_run_fails_at_once_and_says_why(site: Site, app: str, said: str) -> None:
    await site.create_agent("own", **{**own_agent("broken"), "app": app})
    await site.create_run("own", agentRef={"name": "own"})
    status = await site.ended("own")
    assert (status["phase"], len(status["attempts"])) == (Phase.FAILED, 1)
    assert said in await site.finished_because("own")
    await site.told("own", "BadConfiguration")


async def test_a_missing_docs_folder_fails_at_once_and_is_named(site: Site) -> None:
    await site.create_agent("lost", docs={"path": "/no/such/folder"})
    await site.create_run("lost", agentRef={"name": "lost"})
    assert (await site.ended("lost"))["phase"] == Phase.FAILED
    assert "/no/such/folder" in await site.finished_because("lost")


async def test_results_that_no_database_takes_are_stored_and_their_tool_runs_once(
    site: Site, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    await site.create_agent("unstorable", **own_agent("unstorable", MARKS=str(marks)))
    await site.create_run("unstorable", agentRef={"name": "unstorable"})
    status = await site.ended("unstorable")
    assert status["phase"] == Phase.SUCCEEDED, status
    assert [one.get("cause") for one in status["attempts"]] == ["app_error", None]
    assert marks.read_text() == "x"


async def test_a_model_that_asks_for_patience_gets_it_and_costs_no_budget(site: Site) -> None:
    fault = Fault(
        status=429, retry_after_seconds=3, times=2, report=site.report("patient"), step="list_pages"
    )
    site.cluster.model.faults.add(fault)
    await site.create_agent("impatient", resume={"maxNoProgress": 1})
    await site.create_run("patient", agentRef={"name": "impatient"})
    status = await site.succeeded("patient", ["model_error"] * 2)
    assert status["noProgress"] == 0
    for waiting, following in pairwise(status["attempts"]):
        assert _seconds(waiting["endedAt"], following["startedAt"]) >= 2.9
    assert "429" in status["attempts"][0]["message"]
    await site.told("patient", "ModelUnavailable", "Resuming", "Completed")


async def test_a_model_that_refuses_fails_the_run_after_its_budget(site: Site) -> None:
    site.cluster.model.faults.add(Fault(status=400, times=9, report=site.report("refused")))
    await site.create_agent("strict", resume={"maxNoProgress": 2, "backoff": {"initialSeconds": 1}})
    await site.create_run("refused", agentRef={"name": "strict"})
    status = await site.ended("refused")
    assert (status["phase"], len(status["attempts"])) == (Phase.FAILED, 2)
    assert "400" in await site.finished_because("refused")
    await site.told("refused", "Failed", "ModelError")


async def test_a_model_that_is_broken_or_not_there_is_waited_for(site: Site) -> None:
    site.cluster.model.faults.add(Fault(status=500, report=site.report("broken"), step="file_issue"))
    model = dict(site.cluster.agent["spec"]["model"])
    await site.create_agent("nobody", model={**model, "baseUrl": f"http://127.0.0.1:{free_port()}"})
    await site.create_run("broken")
    await site.create_run("unanswered", agentRef={"name": "nobody"})
    await site.told("unanswered", "ModelUnavailable")
    await site.change("TriageAgent", "nobody", model=model)
    await site.succeeded("broken", ["model_error"])
    status = await site.ended("unanswered")
    await site.succeeded("unanswered", ["model_error"] * status["resumes"])
    assert "UNAVAILABLE" in status["attempts"][0]["message"]


def _seconds(since: str, until: str) -> float:
    return (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()
