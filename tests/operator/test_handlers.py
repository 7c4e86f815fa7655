"""Handlers: news wakes the runs that it is about."""

from datetime import UTC, datetime
from typing import Any

import pytest

from triage_contract.names import API_VERSION
from triage_operator.handlers import Handlers
from triage_operator.places import AgentKey, Places
from triage_operator.resources import AGENTS, NODES, PODS, RUNS
from triage_operator.sightings import Sightings
from triage_operator.stored import RunKey

AGENT = AgentKey("docs", "default")


class Woken:
    def __init__(self) -> None:
        self.runs: list[RunKey] = []
        self.agents: list[AgentKey] = []
        self.places = Places()
        self.handlers = Handlers(
            wake=self.runs.append, note_agent=self.agents.append, sightings=Sightings(), places=self.places
        )


@pytest.fixture
def woken() -> Woken:
    return Woken()


def _thing(name: str, version: int = 1, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "namespace": "docs",
            "name": name,
            "uid": name,
            "resourceVersion": str(version),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {},
    }


def test_a_run_is_woken_by_a_version_that_was_not_seen_and_by_its_deletion(woken: Woken) -> None:
    woken.handlers.see(RUNS, None, _thing("tokens"))
    woken.handlers.see(RUNS, "MODIFIED", _thing("tokens"))
    assert woken.runs == [("docs", "tokens")]
    woken.handlers.see(RUNS, "DELETED", _thing("tokens"))
    assert woken.runs == [("docs", "tokens")] * 2


def test_a_pod_wakes_the_run_that_owns_it(woken: Woken) -> None:
    owner = {"apiVersion": API_VERSION, "kind": "TriageRun", "name": "tokens"}
    pod = _thing("tokens-a1", ownerReferences=[owner])
    for event in ("ADDED", "MODIFIED", "DELETED"):
        woken.handlers.see(PODS, event, pod)
    woken.handlers.see(PODS, "ADDED", _thing("foreign"))
    assert woken.runs == [("docs", "tokens")] * 2


def test_an_agent_wakes_its_unfinished_runs_when_its_spec_changes_and_not_its_status(woken: Woken) -> None:
    woken.places.note(AGENT, ("docs", "tokens"), datetime(2026, 1, 1, tzinfo=UTC), queued=False)
    woken.handlers.see(AGENTS, None, _thing("default", generation=1))
    woken.handlers.see(AGENTS, "MODIFIED", _thing("default", 2, generation=1))
    woken.handlers.see(AGENTS, "MODIFIED", _thing("default", 3, generation=2))
    woken.handlers.see(AGENTS, "DELETED", _thing("default", 3, generation=2))
    assert woken.runs == [("docs", "tokens")] * 3
    assert woken.agents == [AGENT] * 3


def test_a_node_that_is_about_to_go_wakes_the_runs_on_it(woken: Woken) -> None:
    owner = {"apiVersion": API_VERSION, "kind": "TriageRun", "name": "tokens"}
    woken.handlers.see(
        PODS, None, _thing("tokens-a1", ownerReferences=[owner]) | {"spec": {"nodeName": "node-1"}}
    )
    woken.runs.clear()
    woken.handlers.see(NODES, None, _thing("node-1"))
    assert woken.runs == []
    woken.handlers.see(NODES, "MODIFIED", _thing("node-1") | {"spec": {"unschedulable": True}})
    assert woken.runs == [("docs", "tokens")]
